"""Hooks of the documentation build: formulae, and parameters as docstrings write them.

Inherited parameters are printed by the package itself, which runs in another environment than MkDocs: AUCDIST_PYTHON names its
interpreter.
"""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from formulae import with_formulae
from griffe import Class, Docstring, DocstringSectionKind, ExprName, Extension, Function, GriffeLoader, Module, Object

CHOICES = re.compile(r"^(\s*[\w, ]+ : )\{(.+?)\}", re.MULTILINE)
HERE = Path(__file__).resolve().parent


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Make the formulae of a page into MathML."""
    return with_formulae(markdown)


def output_of(script: Path) -> str:
    """Return the standard output of a script of this project; a warning is an error."""
    python = os.environ.get("AUCDIST_PYTHON", str(HERE.parent / ".venv" / "bin" / "python"))
    environment = os.environ | {"PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
    done = subprocess.run([python, script], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


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

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **kwargs: Any) -> None:
        """Put inherited parameters, which the code alone does not show, in their place."""
        for path, text in json.loads(output_of(HERE / "estimators.py")).items():
            described = pkg[path.removeprefix("aucdist.")]
            parser = {"parser": described.docstring.parser, "parser_options": described.docstring.parser_options}
            described.docstring = Docstring(text, parent=described, **parser)
            self.on_object(obj=described, loader=loader)
