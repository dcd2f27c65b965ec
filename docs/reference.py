"""The reference of public names: the text between comments on its pages, written from signatures and docstrings.

A comment has the signs of the headings, the module or class, and the names of the objects to describe:

    <!-- ### aucdist: PairwiseHingeClassifier, lam_path -->
    <!-- end -->

Docstrings are Markdown in the sections of numpydoc. After a change of a docstring or of a comment: python docs/reference.py
"""

import inspect
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

PAGES = Path(__file__).resolve().parent / "pages"
REFERENCE = PAGES / "reference"
REGION = re.compile(r"^(<!-- (#+) ([\w.]+):([\w,\s]+)-->\n).*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
SIGNATURE_WIDTH = 100
"""Longer signatures have a line for each parameter."""

TYPED = ("Returns", "Raises", "Warns")
"""Sections whose entries may be types without a name."""
LISTS = ("Parameters", "Attributes", *TYPED, "See Also")
SECTIONS = ("", *LISTS, "Notes", "Examples")
"""The sections of numpydoc, in their order; the first one has no title."""
INHERITED = re.compile(r"As for `\w+`\. ?")
"""The description of a parameter that a class has from another one, which the reference repeats."""
PAGE_NAME = re.compile(r'page\s+"([^"]+)"(?:\s+of\s+the\s+documentation)?')
TYPE_NAME = re.compile(r"\b[A-Z]\w+")
CODE_NAME = re.compile(r"(?<![`*])`([A-Za-z][\w.]*\w)`(?!`)")

Entry = tuple[str, str, list[str]]
"""Names or a type, the type of what has a name, and the lines of the description."""


class Writer:
    """Writes the text of one region."""

    def __init__(self, page: Path, owner: str, signs: str) -> None:
        self.page, self.owner, self.signs = page, owner, signs

    def description(self, name: str) -> str:
        """Return heading, signature and docstring of an object in Markdown."""
        path = f"{self.owner}.{name}"
        thing = resolve_name(path)
        sections = sections_of(thing)
        if takes_parameters(thing, sections):
            add_inherited(thing, sections)
        lines = [f'{self.signs} <a id="{path}"></a>{name}', ""]
        if takes_parameters(thing, sections):
            is_method = isinstance(resolve_name(self.owner), type)
            order = names_of(", ".join(names for names, _, _ in entries(sections.get("Parameters", []))))
            lines += ["```py", signature(name if is_method else path, thing, order), "```", ""]
        for title in filter(sections.__contains__, SECTIONS):
            body = sections[title]
            lines += [f"**{title.capitalize()}**", ""] if title else []
            if title in LISTS:
                lines += self.listed(title, body, getattr(thing, "solvers", {}), name)
            else:
                lines += with_fences([self.with_links(line, name) for line in body])
            lines.append("")
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
        return with_page_links(text, self.page).strip() + "\n"

    def listed(self, title: str, body: list[str], solvers: dict[str, type], itself: str) -> list[str]:
        """Return a section of entries as a list."""
        lines = []
        for head, kind, text in entries(body):
            if title in TYPED and not kind:
                title_line = self.with_types(head, itself)
            elif title == "See Also":
                title_line = f"{self.linked(head, itself) or f'`{head}`'} : {kind}"
            else:
                title_line = ", ".join(f"**`{name}`**" for name in head.split(", "))
                title_line += f" : {self.with_types(kind, itself)}" if kind else ""
            text = [self.with_links(line, itself) for line in text]
            if head == "solver":
                text = [self.with_solvers(line, solvers) for line in text]
            lines += [f"* {title_line}", "", *(f"    {line}".rstrip() for line in text if text != [""]), ""]
        return lines[:-1]

    def with_types(self, text: str, itself: str) -> str:
        """Return the name of a type, in which classes that the reference describes are links."""
        return TYPE_NAME.sub(lambda match: self.linked(match[0], itself) or match[0], text)

    def with_links(self, text: str, itself: str) -> str:
        """Return a line in which names that the reference describes are links."""
        return CODE_NAME.sub(lambda match: self.linked(match[1], itself) or match[0], text)

    def with_solvers(self, text: str, solvers: dict[str, type]) -> str:
        """Return a line in which the names of solvers are links to their classes."""
        for name, kind in solvers.items():
            (path,) = [path for path in places() if resolve_name(path) is kind]
            text = text.replace(f"``{name}``", f"[`{name}`]({self.address(path)})")
        return text

    def linked(self, name: str, itself: str) -> str | None:
        """Return a link to the object of this name that is nearest, or None."""
        paths = [path for path in places() if f".{path}".endswith(f".{name}")]
        for near in (
            [path for path in paths if path == f"{self.owner}.{name}"],
            [path for path in paths if places()[path] == self.page],
            paths,
        ):
            if len(near) == 1 and name != itself:
                return f"[`{name}`]({self.address(near[0])})"
        return None

    def address(self, path: str) -> str:
        """Return the address of an object, as it is written on the page."""
        return f"{relative(places()[path], self.page)}#{path}".removeprefix(self.page.name)


def filled(text: str, page: Path) -> str:
    """Return the text of a page with that of its regions."""

    def region(match: re.Match[str]) -> str:
        writer = Writer(page, match[3], match[2])
        return "\n".join([match[1], *map(writer.description, names_of(match[4])), "<!-- end -->"])

    return REGION.sub(region, text)


def names_of(text: str) -> list[str]:
    """Return the names that a comment lists."""
    return [name.strip() for name in text.split(",")]


@cache
def places() -> dict[str, Path]:
    """Return the page of each object in the reference."""
    return {
        f"{owner}.{name}": page
        for page in sorted(REFERENCE.glob("*.md"))
        for _, _, owner, names in REGION.findall(page.read_text(encoding="utf-8"))
        for name in names_of(names)
    }


def takes_parameters(thing: Any, sections: dict[str, list[str]]) -> bool:
    """Tell whether users call an object, unlike a property, an exception, or a result that only has attributes."""
    if isinstance(thing, type):
        return not issubclass(thing, Exception) and ("Attributes" not in sections or "Parameters" in sections)
    return callable(thing)


def signature(name: str, thing: Any, order: list[str]) -> str:
    """Return a call with all parameters and their defaults; keywords have the order of the docstring."""
    parameters = [
        p.replace(annotation=p.empty) for p in inspect.signature(thing).parameters.values() if p.name != "self"
    ]
    names = [str(p).partition("=")[0] for p in parameters]
    if sorted(names) != sorted(filter(None, order)):
        raise ValueError(f"{name} takes {names}, and its docstring describes {order}")
    parameters.sort(key=lambda p: (p.kind, order.index(p.name) if p.kind is p.KEYWORD_ONLY else -1))
    texts = [str(p) if p.default is p.empty else f"{p.name}={as_code(p.default)}" for p in parameters]
    keywords = [place for place, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY]
    if keywords:
        texts.insert(keywords[0], "*")
    line = f"{name}({', '.join(texts)})"
    if len(line) <= SIGNATURE_WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + ")"


def as_code(default: Any) -> str:
    """Return a default as it is written in Python."""
    return f'"{default}"' if isinstance(default, str) else repr(default)


def sections_of(thing: Any) -> dict[str, list[str]]:
    """Return the lines of each section of a docstring; the text before the first one has no title."""
    parts = re.split(rf"^({'|'.join(SECTIONS[1:])})\n-+\n", inspect.getdoc(thing) or "", flags=re.MULTILINE)
    bodies = [part.strip("\n").split("\n") for part in parts[::2]]
    return dict(zip(["", *parts[1::2]], bodies, strict=True))


def entries(lines: list[str]) -> Iterator[Entry]:
    """Yield the entries of a section: a line that begins at the margin, and the indented lines below it."""
    for head, body in re.findall(r"^(\S.*)((?:\n(?: .*)?)*)", "\n".join(lines), re.MULTILINE):
        names, _, kind = head.partition(" : ")
        yield names, kind, inspect.cleandoc(body).split("\n")


def add_inherited(thing: Any, sections: dict[str, list[str]]) -> None:
    """Describe the parameters of a class where its docstring refers to another class for them."""
    if not isinstance(thing, type):
        return
    inherited: dict[str, Entry] = {}
    for kind in reversed(thing.__mro__[1:]):
        of_kind = entries(sections_of(kind).get("Parameters", [])) if vars(kind).get("__doc__") else ()
        for names, type_text, text in of_kind:
            if not INHERITED.match(text[0]):
                inherited |= {name: (name, type_text, text) for name in names.split(", ")}
    described: list[Entry] = []
    for names, type_text, text in entries(sections.get("Parameters", [])):
        if INHERITED.match(text[0]):
            described += [inherited[name] for name in names.split(", ")]
            own = filter(None, [INHERITED.sub("", text[0]), *text[1:]])
            described[-1] = (*described[-1][:2], [*described[-1][2], *own])
        else:
            described.append((names, type_text, text))
    own_names = ", ".join(names for names, _, _ in described).split(", ")
    described += [inherited[name] for name in inspect.signature(thing).parameters if name not in own_names]
    if described:
        sections["Parameters"] = [
            line
            for names, type_text, text in described
            for line in (f"{names} : {type_text}", *(f"    {line}" for line in text))
        ]


def with_fences(lines: list[str]) -> list[str]:
    """Return a text with its examples as blocks of code."""
    text = re.sub(r"(^>>> .*(?:\n.+)*)", r"```pycon\n\1\n```", "\n".join(lines), flags=re.MULTILINE)
    return text.split("\n")


def with_page_links(text: str, page: Path) -> str:
    """Return a text in which the titles of pages are links."""
    return PAGE_NAME.sub(lambda match: f"page [{match[1]}]({relative(page_of(match[1]), page)})", text)


def page_of(title: str) -> Path:
    """Return the page with a title, up to a remark in brackets."""
    (page,) = [
        file for file in PAGES.rglob("*.md") if re.match(rf"# {title}( \(.*\))?\n", file.read_text(encoding="utf-8"))
    ]
    return page


def relative(page: Path, other: Path) -> str:
    """Return the path of a page from another one."""
    return Path(os.path.relpath(page, other.parent)).as_posix()


def main() -> None:
    """Write the pages again."""
    for page in sorted(REFERENCE.glob("*.md")):
        page.write_text(filled(page.read_text(encoding="utf-8"), page), encoding="utf-8")


if __name__ == "__main__":
    main()
