"""Hooks of the documentation build: formulae, and parameters as docstrings write them."""

import re
from typing import Any

from formulae import with_formulae
from griffe import Class, DocstringSectionKind, ExprName, Extension, Function, GriffeLoader, Object

CHOICES = re.compile(r"^(\s*[\w, ]+ : )\{(.+?)\}", re.MULTILINE)
INLINE_CODE = re.compile(r"(?<!<pre>)(?<!</span>)<code>([^<]*)</code>")
HYPHENATED = re.compile(r"(?<!\S)(?=\S*[-[])\S{2,30}(?!\S)")


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Make the formulae of a page into MathML."""
    return with_formulae(markdown)


def on_page_content(html: str, **kwargs: Any) -> str:
    """Keep browsers from breaking the words of inline code at their hyphens, as in ``--set`` or ``all-pairs``."""

    def with_words(match: re.Match[str]) -> str:
        return "<code>" + HYPHENATED.sub(r'<span class="word">\g<0></span>', match[1]) + "</code>"

    return INLINE_CODE.sub(with_words, html)


class Plain(Extension):
    """Shows types as numpydoc writes them, and the defaults of the signature.

    From ``{"a", "b"} or None`` Griffe takes the first value as the default, and a minus sign as a dash; from parameters that
    are described together it takes default and annotation of one for all.
    """

    def on_class_instance(self, *, cls: Class, **kwargs: Any) -> None:
        """Take the decorator `aucdist.parameters.frozen` for the dataclass that it makes, which has a signature."""
        for decorator in cls.decorators:
            if str(decorator.value) == "frozen":
                decorator.value = ExprName("dataclasses.dataclass")

    def on_object(self, *, obj: Object, loader: GriffeLoader, **kwargs: Any) -> None:
        """Change the docstring before it is shown."""
        if obj.docstring is None:
            return
        obj.docstring.value = CHOICES.sub(r"\1one of \2", obj.docstring.value)
        if not isinstance(obj, Class | Function):
            return
        of_signature = {str(parameter.annotation) for parameter in obj.parameters}
        for section in obj.docstring.parsed:
            if section.kind is DocstringSectionKind.parameters:
                for described in section.value:
                    if described.name in obj.parameters:
                        own = obj.parameters[described.name]
                        described.value = own.default
                        if str(described.annotation) in of_signature:
                            described.annotation = own.annotation
