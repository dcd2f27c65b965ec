"""The docstrings of all public names say all that a user needs: parameters, attributes, shapes, units, errors and sources.

They are in numpydoc's form. What can be compared with the code is compared: names with the signature, defaults with the defaults,
shapes and types with those of a fitted model.
"""

import importlib
import inspect
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from support.small_sets import small

import aucdist
from aucdist.estimators import ESTIMATORS

REFERENCE = Path(__file__).parents[1] / "docs/pages/reference"
PACKAGES = ("aucdist", "aucdist.estimators", "aucdist.metrics", "aucdist.sampling")
ARRAYS = {"X", "y", "y_true", "y_score", "y_proba", "y_pred", "first", "second", "sample_weight"}
SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Warns", "See Also", "Notes", "Examples")
UNITS = {"_bytes": r"bytes|MiB|GiB", "max_passes": "passes", "tol": "relative gap|share|objective", "n_outer": "rounds"}
"""What the description of a parameter whose name ends so has to mention."""

FUNCTIONS = [name for name in aucdist.__all__ if inspect.isfunction(getattr(aucdist, name))]
METHODS = [
    (name, method)
    for name in ESTIMATORS
    for method, found in inspect.getmembers(ESTIMATORS[name])
    if not method.startswith("_") and callable(found) and getattr(found, "__module__", "").startswith("aucdist")
]
DESCRIBED = [
    (module, name)
    for module in [
        *re.findall(r"^::: (aucdist\.metrics\S*)", (REFERENCE / "metrics.md").read_text(), re.M),
        "aucdist.metrics.intervals",
        "aucdist.export",
    ]
    if module.rpartition(".")[2].islower()
    for name, found in vars(importlib.import_module(module)).items()
    if inspect.isfunction(found) and not name.startswith("_") and found.__module__.startswith(module)
]
"""Functions beside those of ``aucdist``: of a module that the reference shows, with what it defines."""
X, Y = small(n_pos=12, n_neg=28)


def sections_of(thing):
    """Return summary and the lines of each section of a docstring."""
    found, title = {"": []}, ""
    lines = inspect.getdoc(thing).splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line in SECTIONS and set(following) == {"-"}:
            title = line
            found[title] = []
        elif set(line) != {"-"}:
            found[title].append(line)
    return found


def entries_of(lines):
    """Return type and description by name: ``name, name : type`` and indented lines below it."""
    found, names = {}, []
    for line in lines:
        if line and not line.startswith(" "):
            head, _, kind = line.partition(" : ")
            names = [name.strip() for name in head.split(",")]
            for name in names:
                assert name not in found, f"{name} is there twice"
                found[name] = [kind.strip(), ""]
        elif line.strip():
            for name in names:
                found[name][1] += line.strip() + " "
    return found


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
                given = [eval(text, {}, {}) for text in re.split(r", (?![^()]*\))", stated[1])]
                assert default in given, f"the default of {name} is {default!r}, not {stated[1]}"
        for suffix, unit in UNITS.items():
            if name.endswith(suffix) and description:
                assert re.search(unit, description), f"the unit of {name} is missing"


def public():
    """Yield every public class and function once."""
    seen = set()
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            thing = getattr(package, name)
            if callable(thing) and thing not in seen:
                seen.add(thing)
                yield pytest.param(thing, id=name)


@pytest.mark.parametrize("thing", list(public()))
def test_it_begins_with_a_sentence_and_every_parameter_is_described(thing):
    first = inspect.getdoc(thing).splitlines()[0]
    assert first[0].isupper()
    assert first.endswith(".")
    if isinstance(thing, type) and issubclass(thing, Warning):
        return
    # Plain results have attributes in place of parameters.
    is_result = hasattr(thing, "__dataclass_fields__") and not hasattr(thing, "get_params")
    described = entries_of(sections_of(thing).get("Attributes" if is_result else "Parameters", []))
    wanted = [name for name in inspect.signature(thing).parameters if name != "self"]
    assert [name for name in wanted if name not in {entry.strip("*") for entry in described}] == []
    for name in ARRAYS & set(wanted):
        assert re.search(r"\bshape\b|\bAs (for|in)\b|as in", " ".join(described[name])), f"{name}: no shape"
    if hasattr(thing, "get_params"):
        text = inspect.getdoc(thing) + (sys.modules[thing.__module__].__doc__ or "")
        assert re.search(r"\b(19|20)\d\d\b", text), "it names no paper"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_state_parameters_defaults_units_and_source(name):
    sections = sections_of(ESTIMATORS[name])
    check_parameters(entries_of(sections["Parameters"]), parameters_of(ESTIMATORS[name].__init__))
    text = " ".join(sections[""])
    assert re.search(r"\((\d{4}|[^()]*, \d{4})\)", text), "the description names no source with its year"
    assert "Minimises" in text, "the description does not say what is minimised"
    assert "Examples" in sections


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_state_their_attributes_with_shapes_and_types(name):
    documented = entries_of(sections_of(ESTIMATORS[name])["Attributes"])
    for attribute, (kind, _) in documented.items():
        assert kind, f"{attribute} has no type"
    for model in fitted(name):
        public = [a for a in vars(model) if a.endswith("_") and not a.startswith("_")]
        properties = inspect.getmembers(type(model), lambda p: isinstance(p, property))
        public += [a for a, _ in properties if a.endswith("_") and not a.startswith("_") and hasattr(model, a)]
        for attribute in public:
            assert attribute in documented, f"{attribute} is not documented"
            check_kind(attribute, documented[attribute][0], getattr(model, attribute))


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


def fitted(name):
    """Yield models, fitted in ways that set all attributes."""
    kind = ESTIMATORS[name]
    parameters = set(kind().get_params())
    choices = [{}]
    choices += [{"calibration": "logit"}] if "calibration" in parameters else []
    choices += [{"kernel": "rbf"}] if "kernel" in parameters else []
    choices += [{"xi": "bayes", "shape_rounds": 1, "shape_samples": 40}] if "xi" in parameters else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for choice in choices:
            yield kind(max_passes=3, **choice).fit(X, Y)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_methods_state_parameters_results_and_errors(name, method):
    function = getattr(ESTIMATORS[name], method)
    sections, signature = sections_of(function), parameters_of(function)
    assert sections[""][0][0].isupper()
    check_parameters(entries_of(sections.get("Parameters", [])), signature, every_default=False)
    if inspect.signature(function).return_annotation not in (None, "None"):
        assert any(line.strip() for line in sections.get("Returns", [])), "what is returned is not said"
    if "X" in signature or method.startswith("check"):
        assert entries_of(sections.get("Raises", [])), "the errors are not named"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_state_parameters_results_and_errors(name):
    function = getattr(aucdist, name)
    sections = sections_of(function)
    check_parameters(entries_of(sections["Parameters"]), parameters_of(function), every_default=False)
    assert entries_of(sections["Returns"])
    assert entries_of(sections["Raises"])
    assert "Examples" in sections


def test_functions_of_metrics_and_exports_leave_no_parameter_out():
    for module, name in DESCRIBED:
        function = getattr(importlib.import_module(module), name)
        sections = sections_of(function)
        if "Parameters" in sections:
            check_parameters(entries_of(sections["Parameters"]), parameters_of(function), every_default=False)


def test_completion_shows_all_public_names():
    assert set(aucdist.__all__) <= set(dir(aucdist))
    assert not {"Any", "TYPE_CHECKING"} & set(dir(aucdist))


def test_a_docstring_that_leaves_something_out_is_noticed():
    def short(X, lam=1e-3):
        """Do something.

        Parameters
        ----------
        X : ndarray
        lam : float, default=1.0
        """

    documented = entries_of(sections_of(short)["Parameters"])
    with pytest.raises(AssertionError, match=r"default of lam is 0\.001"):
        check_parameters(documented, parameters_of(short))
    with pytest.raises(AssertionError, match="order is that of the signature"):
        check_parameters({"X": documented["X"]}, parameters_of(short))
    with pytest.raises(AssertionError, match="has no shape"):
        check_kind("coef_", "ndarray", np.zeros(3))
    with pytest.raises(AssertionError, match="has shape"):
        check_kind("coef_", "ndarray of shape (1, n_features), float64", np.zeros(3))
    with pytest.raises(AssertionError, match="is a float"):
        check_kind("xi_", "int", 0.5)
