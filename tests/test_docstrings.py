"""The docstrings of all public names say all that a user needs: parameters, attributes, shapes, units, errors and sources.

They are in numpydoc's form. What can be compared with the code is compared: names with the signature, defaults with the defaults,
shapes and types with those of a fitted model.
"""

import ast
import importlib
import inspect
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from support.docstrings import check_kind, check_parameters, entries_of, names_bound, parameters_of, sections_of
from support.small_sets import small

import aucdist
from aucdist.estimators import ESTIMATORS

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs/pages/reference"
PACKAGES = ("aucdist", "aucdist.estimators", "aucdist.metrics", "aucdist.sampling")
MAY_SAY_NOTHING = re.compile(r"^(?!from ).*\b(found|wanted|given)( *[:=,)\]]| in | [^\w\s]+=)", re.M)
ARRAYS = {"X", "y", "y_true", "y_score", "y_proba", "y_pred", "first", "second", "sample_weight"}

FUNCTIONS = [name for name in aucdist.__all__ if inspect.isfunction(getattr(aucdist, name))]
METHODS = [
    (name, method)
    for name in ESTIMATORS
    for method, member in inspect.getmembers(ESTIMATORS[name])
    if not method.startswith("_") and callable(member) and getattr(member, "__module__", "").startswith("aucdist")
]
DESCRIBED = [
    (module, name)
    for module in [
        *re.findall(
            r"^::: (aucdist\.metrics\S*)", "\n".join(page.read_text() for page in REFERENCE.glob("metric*.md")), re.M
        ),
        "aucdist.metrics",
        "aucdist.metrics.intervals",
        "aucdist.export",
    ]
    if module.rpartition(".")[2].islower()
    for name, member in vars(importlib.import_module(module)).items()
    if inspect.isfunction(member) and not name.startswith("_") and member.__module__.startswith(module)
]
"""Functions beside those of ``aucdist``: of a module that the reference shows, with what it defines."""
X, Y = small(n_pos=12, n_neg=28)


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
    names = [name for name in inspect.signature(thing).parameters if name != "self"]
    assert [name for name in names if name not in {entry.strip("*") for entry in described}] == []
    for name in ARRAYS & set(names):
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


def fitted(name):
    """Yield models, fitted in ways that set all attributes."""
    kind = ESTIMATORS[name]
    parameters = set(kind().get_params())
    choices = [{}]
    choices += [{"calibration": "logit"}] if "calibration" in parameters else []
    choices += [{"kernel": "rbf"}] if "kernel" in parameters else []
    choices += [{"xi": "bayes", "shape_rounds": 1, "shape_samples": 40}] if "xi" in parameters else []
    with warnings.catch_warnings(action="ignore"):
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


def test_variables_and_parameters_have_names_that_say_something():
    for path in [path for folder in ("aucdist", "flows", "docs", "tests") for path in (ROOT / folder).rglob("*.py")]:
        code = path.read_text(encoding="utf-8")
        for line, name in names_bound(ast.parse(code)) if MAY_SAY_NOTHING.search(code) else ():
            place = f"{path.relative_to(ROOT)}:{line}"
            assert name not in ("found", "wanted", "given"), f"{place}: name the thing that {name!r} is"


def test_functions_that_only_raise_an_error_are_called_check():
    for path in [path for folder in ("aucdist", "flows") for path in (ROOT / folder).rglob("*.py")]:
        named = re.findall(r"^ *def (_?refuse\w*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert not named, f"{path.relative_to(ROOT)}: {named}"


def test_names_are_found_wherever_they_are_bound():
    text = "def f(a, *, b=0, **c):\n    (d, *e), g.h = [k for k in x if (m := k)]\nclass T:\n    n: int\n    o = lambda p: q"
    assert sorted(name for _, name in names_bound(ast.parse(text))) == list("abcdekmop")


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
