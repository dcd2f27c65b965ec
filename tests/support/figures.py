"""Figures that are set up but not rendered, where a test looks at other things: rendering is most of the cost of a page."""

from collections.abc import Callable
from typing import Any

import pytest

from aucdist.extras import load_optional
from aucdist.report import plots

EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" width="10pt" height="5pt" viewBox="0 0 10 5"></svg>'


RENDER = plots._svg


def leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no figure be made: where a test looks at runs, drawing would take a third of the time."""
    monkeypatch.setattr(plots, "_svg", lambda name, plot, height: EMPTY)


def fit_the_model_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs draw no figures, and fit no baselines beside the model."""
    leave_out(monkeypatch)
    monkeypatch.setattr("flows.train.run.baselines", lambda rows, observer: [])


def render_only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let only the figures of these names be rendered; of the others the plot is drawn into axes and left there."""

    def svg(name: str, plot: Callable[[Any], None], height: float) -> str:
        if name in names:
            return RENDER(name, plot, height)
        matplotlib, figures = load_optional("matplotlib"), load_optional("matplotlib.figure")
        with matplotlib.rc_context(plots.STYLE):
            plot(figures.Figure().add_subplot())
        return EMPTY

    monkeypatch.setattr(plots, "_svg", svg)
