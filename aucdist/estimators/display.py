"""What a user sees of a fit: printed rounds, warnings, plots, and the model in a notebook."""

import functools
import html
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import estimator_html_repr

from aucdist.data.column_statistics import ColumnRanges
from aucdist.engine.blocks import Blocks
from aucdist.errors import UNFINISHED, InputError
from aucdist.estimators.conditioning import diagnosis
from aucdist.estimators.scores import auc_of_rows, check_two_classes
from aucdist.estimators.tables import labels_of_features, names_of_features
from aucdist.extras import load_optional
from aucdist.solvers.base import REACHED, Callback, Record, Solution

MAX_SHAPES = 6
MAX_CLASSES = 12
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


LARGE_SHARE = 0.8
"""The share of the rows from which a positive class that was only chosen by the alphabet is probably the wrong one."""


class RankingWarning(UserWarning):
    """Warns that the scores rank the training rows worse than chance."""


class RoundPrinter:
    """Prints rounds while an estimator with `verbose` is fitted, and passes each round to another callback.

    With ``verbose=1``, it prints the rounds 1 to 10, 20, 30, ..., 100, 200, ..., and with ``verbose=2`` all rounds.

    Parameters
    ----------
    estimator : estimator of aucdist
        The estimator that is fitted.
    name : str
        The word that begins each line; by default the name of the estimator.
    callback : callable or None
        The other callback.
    """

    def __init__(self, estimator: Any, name: str, callback: Callback | None):
        self._name, self._verbose, self._callback = name or type(estimator).__name__, estimator.verbose, callback
        self._printed = 0

    def __call__(self, record: Record) -> None:
        """Print a round, unless `verbose` leaves it out."""
        number = int(record["round"])
        if self._verbose > 1 or (self._verbose and number % 10 ** (len(str(number)) - 1) == 0):
            self._print(record)
        if self._callback is not None:
            self._callback(record)

    def end(self, solution: Solution) -> None:
        """Print the last round if it was left out, and how the fit ended."""
        if not self._verbose:
            return
        last, certificate = solution.records[-1], solution.certificate
        if self._printed != last["round"]:
            self._print(last)
        print(f"[{self._name}] {certificate.status} after {solution.passes} passes, gap {certificate.relative_gap:.2e}")

    def _print(self, record: Record) -> None:
        self._printed = int(record["round"])
        print(
            f"[{self._name}] round {self._printed}  passes {int(record['passes'])}  primal {record['primal']:.6g}  "
            f"dual {record['dual']:.6g}  gap {record['relative_gap']:.2e}",
            flush=True,
        )


def warnings_of_fit(model: Any, ranges: ColumnRanges | None, blocks: Blocks) -> Iterator[Warning]:
    """Yield the warnings of a fit: an early end and its reason, a larger class that is positive by its name only, and bad scores.

    Parameters
    ----------
    model : estimator of aucdist
        The fitted model.
    ranges : ColumnRanges or None
        The ranges of the columns that the solver got. None if there is a feature map, which scales its basis functions.
    blocks : Blocks
        The training rows.

    Yields
    ------
    Warning
    """
    c = model.certificate_
    if c.status not in REACHED:
        fault = None if ranges is None or model._map is not None else diagnosis(ranges, names_of_features(model))
        reason, remedy = UNFINISHED[c.status]
        yield ConvergenceWarning(
            f"the fit ended after {model.n_passes_} passes, before the relative gap reached tol={model.tol:g}: the gap is "
            f"{c.relative_gap:.3g} (primal {c.primal:.6g}, dual {c.dual:.6g}"
            f"{f', accurate only to {c.rounding:.3g}' if c.status == 'rounding' else ''}). Reason: {reason}. "
            f"{remedy}{'' if fault is None else f'. {fault}'}"
        )
    if model.monotone is not None and not getattr(model, "coef_", np.ones(1)).any():
        yield UserWarning(
            "with the directions in `monotone` all weights are 0 and all scores are equal: the data seem to have the "
            "opposite directions. Check `monotone`"
        )
    share = blocks.weight_pos / (blocks.weight_pos + blocks.weight_neg)
    if model.classes_.dtype.kind in "OUT" and share >= LARGE_SHARE:
        negative, positive = model.classes_.tolist()
        yield UserWarning(
            f"{positive!r} is the positive class, because it is the last one in alphabetical order, and it has {share:.0%} of "
            f"the rows: if {negative!r} is the class to find, fit with y == {negative!r}"
        )
    if blocks.has_groups or blocks.has_grades:  # The order of two rows of different groups does not matter.
        return
    area = model._auc if hasattr(model, "_auc") else auc_of_rows(blocks, model.coef_[0])
    if area < 0.5:
        yield RankingWarning(
            f"the AUC of the training rows is {area:.3g}, worse than chance: the scores rank negative rows above positive "
            "ones. Try another lam or solver, and check which class is positive"
        )


class WithPlots:
    """The plots of a fitted estimator, and its page in a notebook."""

    def plot_gains(self: Any, X: Any, y: Any, ax: Any = None) -> Any:
        """Plot the share of the positives that are among the highest-scoring rows, against the share of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows to plot, with the features of the training rows.
        y : array-like of shape (n_samples,)
            The classes of the rows.
        ax : matplotlib Axes, optional
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib Axes
            The axes with the curve, on which tied rows form a straight line, and with the diagonal of rows in random order.

        Raises
        ------
        InputError
            If matplotlib is not installed, the model has several classes, or no row is positive.
        """
        check_two_classes(self, "plot_gains")
        ax = ax if ax is not None else load_optional("matplotlib.pyplot").subplots()[1]
        scores, positive = np.asarray(self.decision_function(X)), np.asarray(y) == self.classes_[1]
        if not positive.any():
            raise InputError(
                f"plot_gains: no row of y is of the positive class '{self.classes_[1]}': give labels as in fit"
            )
        order = np.argsort(-scores, kind="stable")
        last = np.flatnonzero(np.diff(scores[order], append=-np.inf))  # the last of each run of rows with equal scores
        gains = np.cumsum(positive[order])[last] / np.count_nonzero(positive)
        ax.plot(np.append(0.0, (last + 1) / len(scores)), np.append(0.0, gains), label=type(self).__name__)
        ax.plot([0, 1], [0, 1], color="gray", linestyle=":", label="random order")
        ax.set(xlabel="share of rows, highest scores first", ylabel="share of the positives among them")
        ax.legend()
        return ax

    def plot_shapes(self: Any, n_shapes: int = MAX_SHAPES) -> Any:
        """Plot what the features add to the score, beginning with those that move it most.

        Parameters
        ----------
        n_shapes : int, default=6
            The largest number of features to show.

        Returns
        -------
        matplotlib Figure
            A figure with a plot for each feature, all on the same scale.

        Raises
        ------
        InputError
            If matplotlib is not installed, the model has no binned features, or several classes.
        """
        drawn = list(_shape_plots(self, n_shapes))
        n_columns = max(1, min(3, len(drawn)))
        n_rows = max(1, -(-len(drawn) // n_columns))
        pyplot = load_optional("matplotlib.pyplot")
        figure, axes = pyplot.subplots(n_rows, n_columns, squeeze=False, figsize=(4 * n_columns, 3 * n_rows))
        for ax in axes.flat[len(drawn) :]:
            ax.remove()
        for ax, (_, _, plot) in zip(axes.flat, drawn, strict=False):
            plot(ax)
            ax.xaxis.label.set_parse_math(False)  # a name may contain dollar signs
            if ax.get_legend_handles_labels()[0]:
                ax.legend(loc="upper left")
        figure.tight_layout()
        return figure

    def _html_repr(self: Any) -> str:
        """Return the HTML that a notebook shows. Before `fit`, it is scikit-learn's diagram.

        The HTML loads nothing from the network. Scikit-learn calls this method if its setting `display` is "diagram".
        """
        diagram: str = estimator_html_repr(self)
        if self.has_several_classes:
            named = list(zip(map(str, self.classes_), self.estimators_, strict=True))
            rest = "" if len(named) <= MAX_CLASSES else f"<p>and {len(named) - MAX_CLASSES} more classes</p>"
            content = _fits_table(named[:MAX_CLASSES]) + rest
        elif hasattr(self, "certificate_"):
            from aucdist.report import plots

            content = _fits_table([("", self)])
            if hasattr(self, "feature_importances_"):  # a model that has shapes
                figures = [  # no other model of the notebook has this identifier
                    plots.inline_svg(f"aucdist-shape-{next(_html_numbers)}", name, text, plot, 187.0)
                    for name, text, plot in _shape_plots(self, MAX_SHAPES)
                ]
                content += f'<div class="shapes">{"".join(f"<div>{figure}</div>" for figure in figures)}</div>'
        else:
            return diagram
        return f'{diagram}<style>{STYLE}</style><div class="aucdist-model">{content}</div>'


_html_numbers = itertools.count()


def _fits_table(models: list[tuple[str, Any]]) -> str:
    """Return a table with one row for each model, which has its certificate and its AUC on the training rows."""
    from aucdist.text import auc_text, certificate_text, number_text

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


def _shape_plots(model: Any, n_shapes: int) -> Iterator[tuple[str, str, Callable[[Any], None]]]:
    """Yield the name, the text and the plot of each shape, beginning with the shapes that move the score most."""
    from aucdist.report.sections import shape_plot, shape_text

    labels = labels_of_features(model)
    moving = [shape for shape in model.shapes().shapes if shape.spread > 0]
    drawn = sorted(moving, key=lambda shape: -shape.spread)[:n_shapes]
    reach = max((float(abs(shape.values).max()) for shape in drawn), default=1.0)
    for shape in drawn:
        name = labels[shape.feature]
        yield name, shape_text(shape), functools.partial(shape_plot, shape=shape, name=name, reach=reach)
