"""Docstrings in numpydoc's form, taken apart and compared with signatures and values; and the names that code binds."""

import ast
import inspect
import re

import numpy as np

SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Warns", "See Also", "Notes", "Examples")
UNITS = {"_bytes": r"bytes|MiB|GiB", "max_passes": "passes", "tol": "relative gap|share|objective", "n_outer": "rounds"}
"""What the description of a parameter whose name ends so has to mention."""


def sections_of(thing):
    """Return summary and the lines of each section of a docstring."""
    sections, title = {"": []}, ""
    lines = inspect.getdoc(thing).splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line in SECTIONS and set(following) == {"-"}:
            title = line
            sections[title] = []
        elif set(line) != {"-"}:
            sections[title].append(line)
    return sections


def entries_of(lines):
    """Return type and description by name: ``name, name : type`` and indented lines below it."""
    entries, names = {}, []
    for line in lines:
        if line and not line.startswith(" "):
            head, _, kind = line.partition(" : ")
            names = [name.strip() for name in head.split(",")]
            for name in names:
                assert name not in entries, f"{name} is there twice"
                entries[name] = [kind.strip(), ""]
        elif line.strip():
            for name in names:
                entries[name][1] += line.strip() + " "
    return entries


def parameters_of(function):
    """Return the parameters of a signature, without self."""
    return {
        str(p).partition(":")[0].partition("=")[0].strip(): p
        for p in inspect.signature(function).parameters.values()
        if p.name != "self"
    }


def check_parameters(documented, signature, *, every_default=True):
    by_place = [name for name, p in signature.items() if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert [name for name in documented if name in by_place] == by_place, "the order is that of the signature"
    assert sorted(documented) == sorted(signature)
    for name, parameter in signature.items():
        kind, description = documented[name]
        assert kind or description, f"{name} has neither type nor description"
        default = parameter.default
        if every_default and default is not inspect.Parameter.empty:
            stated = re.search(r"default=(.+)$", kind)
            assert stated or "optional" in kind or not kind, f"the default of {name} is missing: {kind!r}"
            if stated:
                choices = [eval(text, {}, {}) for text in re.split(r", (?![^()]*\))", stated[1])]
                assert default in choices, f"the default of {name} is {default!r}, not {stated[1]}"
        for suffix, unit in UNITS.items():
            if name.endswith(suffix) and description:
                assert re.search(unit, description), f"the unit of {name} is missing"


def check_kind(name, kind, value):
    """Check that the documented type of an attribute, with its shape, is that of a value."""
    if isinstance(value, np.ndarray):
        shape = re.search(r"of shape \(([^)]*)\)", kind)
        assert shape, f"{name} has no shape: {kind!r}"
        assert len([n for n in shape[1].split(",") if n.strip()]) == value.ndim, f"{name} has shape {value.shape}"
        for text, n in zip(shape[1].split(","), value.shape, strict=False):
            assert not text.strip().isdigit() or int(text) == n, f"{name} has shape {value.shape}, not {shape[1]}"
        if value.dtype == np.float64:
            assert "float64" in kind, f"{name} is float64: {kind!r}"
    else:
        names = {c.__name__ for c in type(value).__mro__} | {"object"}
        assert any(re.search(rf"\b{n}\b", kind) for n in names), f"{name} is a {type(value).__name__}: {kind!r}"


def names_bound(tree):
    """Yield line and name of each parameter and variable; the annotated fields of a class are keys that others read."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    fields = [part.target for node in classes for part in node.body if isinstance(part, ast.AnnAssign)]
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields:
            yield node.lineno, node.id
