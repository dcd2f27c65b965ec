"""Formulae of the pages: a small part of TeX, between dollar signs, made into MathML, which browsers draw without a script.

GitHub draws the same source itself. What is not known here is an error, so a page never shows raw TeX.
"""

import re
import unicodedata
from html import escape

FENCE = re.compile(r"(^```.*?^```[^\n]*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
DISPLAYED = re.compile(r"^\$\$(.+?)\$\$[ ]*$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<![\\$\w])\$([^\s$](?:[^$\n]*\n?[^$\n]*[^\s$])?)\$(?![\w$])")
TEXT = re.compile(r"\\text\{[^}]*\}")
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.DOTALL)

GREEK = ("epsilon", "eta", "theta", "lamda", "xi", "phi", "alpha", "beta", "mu", "sigma")
LETTERS = {name.replace("lamda", "lambda"): unicodedata.lookup(f"GREEK SMALL LETTER {name}") for name in GREEK} | {
    "ell": "\N{SCRIPT SMALL L}",
    "top": "\N{DOWN TACK}",
}
SIGNS = {
    name: unicodedata.lookup(character)
    for name, character in {
        "sum": "N-ARY SUMMATION", "int": "INTEGRAL", "cdot": "DOT OPERATOR",
        "le": "LESS-THAN OR EQUAL TO", "ge": "GREATER-THAN OR EQUAL TO",
        "in": "ELEMENT OF", "to": "RIGHTWARDS ARROW", "times": "MULTIPLICATION SIGN", "dots": "HORIZONTAL ELLIPSIS",
        "lVert": "DOUBLE VERTICAL LINE", "rVert": "DOUBLE VERTICAL LINE",
        "quad": "EM SPACE", ",": "THIN SPACE", "{": "LEFT CURLY BRACKET", "}": "RIGHT CURLY BRACKET",
    }.items()
} | dict.fromkeys(("lvert", "rvert"), "&#124;")  # fmt: skip
"""A vertical line is written as an entity, because the character itself would end a cell of a table."""
PLAIN = {"-": "\N{MINUS SIGN}", "'": "\N{PRIME}", "*": "\N{ASTERISK OPERATOR}"}
"""Signs that are drawn as others; two asterisks of a paragraph would be emphasis in Markdown."""
WORDS = ("max", "min", "log", "exp", "sign", "arg")


def with_formulae(text: str) -> str:
    """Return a page in Markdown with its formulae as MathML; code is left as it is."""
    parts = FENCE.split(text)
    for place in range(0, len(parts), 2):
        shown = DISPLAYED.sub(lambda match: "\n" + mathml(match[1], displayed=True) + "\n", parts[place])
        parts[place] = INLINE.sub(lambda match: f'<span class="math">{mathml(match[1])}</span>', shown)
    return "".join(parts)


def mathml(tex: str, *, displayed: bool = False) -> str:
    """Return a formula as a MathML element."""
    tex = TEXT.sub(lambda match: match[0].replace(" ", "~"), tex)
    tokens = [token for token in TOKEN.findall(tex) if not token.isspace()]
    row = _row(tokens, "")
    if tokens:
        raise ValueError(f"{tex!r} has a bracket too many")
    return f"<math{' display=' + chr(34) + 'block' + chr(34) if displayed else ''}>{row}</math>"


def _row(tokens: list[str], end: str) -> str:
    """Return the formula up to a closing token, which is taken as well."""
    items: list[str] = []
    while tokens:
        if end and tokens[0] == end:
            tokens.pop(0)
            return f"<mrow>{''.join(items)}</mrow>"
        if tokens[0] == "}":
            break
        if tokens[0] in "_^":
            items.append(_scripts(items.pop() if items else "<mrow></mrow>", tokens))
        else:
            items.append(_item(tokens))
    if end:
        raise ValueError(f"a formula lacks {end!r}")
    return f"<mrow>{''.join(items)}</mrow>"


def _scripts(base: str, tokens: list[str]) -> str:
    """Return an item with what stands below and above it."""
    parts = {}
    while tokens and tokens[0] in "_^":
        place = tokens.pop(0)
        parts[place] = _item(tokens)
    limits = "under" if base.startswith((f"<mo>{SIGNS['sum']}", "<mo>max", "<mo>min")) else "sub"
    over = "over" if limits == "under" else "sup"
    if len(parts) == 2:
        return f"<m{limits}{over}>{base}{parts['_']}{parts['^']}</m{limits}{over}>"
    kind = limits if "_" in parts else over
    return f"<m{kind}>{base}{next(iter(parts.values()))}</m{kind}>"


def _item(tokens: list[str]) -> str:
    """Return the next item of a formula."""
    token = tokens.pop(0)
    if token == "{":
        return _row(tokens, "}")
    if not token.startswith("\\"):
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        return f"<mi>{token}</mi>" if token.isalpha() else f"<mo>{escape(PLAIN.get(token, token))}</mo>"
    name = token[1:]
    if name == "frac":
        return f"<mfrac>{_item(tokens)}{_item(tokens)}</mfrac>"
    if name == "sqrt":
        return f"<msqrt>{_item(tokens)}</msqrt>"
    if name in ("text", "mathrm"):
        return _text(tokens)
    if name in LETTERS:
        return f"<mi>{LETTERS[name]}</mi>"
    if name in WORDS:
        return f"<mo>{name}</mo>" if name in ("max", "min") else f"<mi>{name}</mi>"
    if name in SIGNS:
        return f"<mo>{SIGNS[name]}</mo>"
    raise ValueError(f"{token} is not known to docs/formulae.py")


def _text(tokens: list[str]) -> str:
    """Return words of a formula; ``~`` stands for a blank."""
    if tokens.pop(0) != "{":
        raise ValueError(r"\text needs braces")
    words = ""
    while (token := tokens.pop(0)) != "}":
        words += token
    return f"<mtext>{escape(words.replace('~', chr(160)))}</mtext>"
