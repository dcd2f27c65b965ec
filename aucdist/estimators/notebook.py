"""What a notebook shows of a fitted model: scikit-learn's diagram, what the certificate proves, and the shapes of features."""

import html
import itertools
from typing import Any

from sklearn.utils import estimator_html_repr

from aucdist.errors import InputError
from aucdist.estimators.tables import names_of_features
from aucdist.report import plots
from aucdist.report.additive import shape_plot, shape_text
from aucdist.report.text import auc_text, certificate_text, number_text

MOST_SHAPES, MOST_CLASSES = 6, 12
STYLE = """
.aucdist-model { --ink: #1c2127; --muted: #59616b; --grid: #c9ccd0; --pos: #c24e00; --neg: #0067a8; --card: #ffffff;
  color: var(--ink); background: var(--card); padding: .2em .8em .6em; border: 1px solid var(--grid); border-radius: 4px;
  margin-top: .5em; max-width: 62em; font-family: sans-serif; font-size: 13px; }
.aucdist-model table { font-size: 13px; border-collapse: collapse; margin: .3em 0; }
.aucdist-model :is(th, td) { text-align: left; padding: .1em 1.2em .1em 0; background: none; }
.aucdist-model .shapes { display: grid; grid-template-columns: repeat(auto-fill, minmax(17em, 1fr)); gap: .4em 1em; }
.aucdist-model svg { width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  .aucdist-model { --ink: #e6e8ea; --muted: #a3abb3; --grid: #454b52; --pos: #ff9550; --neg: #5cb8f0; --card: #1e2226; }
}
"""
_numbers = itertools.count()


def model_html(model: Any) -> str:
    """Return a model as a notebook shows it.

    Returns HTML that asks for nothing from elsewhere. Before `fit` it is scikit-learn's diagram alone.
    """
    diagram: str = estimator_html_repr(model)
    if model.has_several_classes:
        names = [str(name) for name in model.classes_]
        named = list(zip(names, model.estimators_, strict=True))
        rest = "" if len(named) <= MOST_CLASSES else f"<p>and {len(named) - MOST_CLASSES} more classes</p>"
        content = _table([(name, one) for name, one in named[:MOST_CLASSES]]) + rest
    elif hasattr(model, "certificate_"):
        content = _table([("", model)]) + _shapes(model)
    else:
        return diagram
    return f'{diagram}<style>{STYLE}</style><div class="aucdist-model">{content}</div>'


def _table(models: list[tuple[str, Any]]) -> str:
    """Return a row for each model: what is proved, and how it ranks the training rows."""
    rows = []
    for name, model in models:
        certificate = model.certificate_
        cells = [
            name, certificate_text(certificate.as_dict()), number_text(certificate.primal, 5), number_text(certificate.dual, 5),
            str(certificate.status), str(model.n_passes_), auc_text(getattr(model, "_auc", None)),
        ]  # fmt: skip
        rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells))
    heads = ("", "The objective is", "primal", "dual", "status", "passes", "AUC of the training rows")
    shown = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{shown}</table>"


def _shapes(model: Any) -> str:
    """Return the shapes that move the score most; nothing where the model has none, or matplotlib is not installed."""
    try:
        found = model.shapes().shapes
        plots.load_optional("matplotlib")
    except (AttributeError, InputError):
        return ""
    names = names_of_features(model)
    drawn = sorted((shape for shape in found if shape.spread > 0), key=lambda shape: -shape.spread)[:MOST_SHAPES]
    reach = max((float(abs(shape.values).max()) for shape in drawn), default=1.0)
    figures = []
    for shape in drawn:
        name = f"x{shape.feature}" if names is None else str(names[shape.feature])
        identifier = f"aucdist-shape-{next(_numbers)}"  # of no other model of the notebook
        figures.append(plots.inline_svg(identifier, name, shape_text(shape), shape_plot(shape, name, reach), 2.6))
    return f'<div class="shapes">{"".join(f"<div>{figure}</div>" for figure in figures)}</div>'
