"""What the terminal shows."""

import io
import math
import warnings

import pytest
from rich.console import Console

from flows.progress import LineObserver, LiveObserver, gap_progress, trained_lines, warnings_to

RECORD = {"round": 3, "passes": 7, "seconds": 0.5, "primal": 0.25, "dual": 0.2, "relative_gap": 0.2}
RESULT = {
    "run": "runs/x", "estimator": "E", "solver": "s", "n_samples": 1000, "n_features": 3, "n_pos": 100, "n_neg": 900,
    "metrics": {"train_auc": 0.9, "test_auc": 0.85, "test_auc_interval": [0.8, 0.9]},
    "certificate": {"primal": 0.25, "dual": 0.249, "relative_gap": 0.004, "status": "converged"},
    "decisions": {
        "target": {}, "threshold": 0.0, "rows": "test", "set_on": "training", "recall": {"value": 0.8, "interval": None},
        "precision": {"value": 0.6, "interval": None}, "alerts": {"value": 0.1, "interval": None},
    },
    "passes": 12, "seconds": {"data": 0.1, "fit": 0.2, "evaluate": 0.3},
    "warnings": [{"key": "few", "text": "Test on more rows than \x1b[2J these."}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("gap", "share"), [(1.0, 0.0), (2.0, 0.0), (0.1, 1 / 3), (0.01, 2 / 3), (1e-3, 1.0), (1e-9, 1.0), (math.inf, 0.0)]
)
def test_progress_is_on_a_log_scale(gap: float, share: float) -> None:
    assert gap_progress(1.0, gap, 1e-3) == pytest.approx(share)


@pytest.mark.parametrize(("first", "gap", "tol"), [(math.nan, 0.5, 1e-3), (0.5, math.nan, 1e-3), (1.0, 0.5, 0.0)])
def test_progress_takes_any_numbers(first: float, gap: float, tol: float) -> None:
    assert 0 <= gap_progress(first, gap, tol) <= 1


def test_lines_are_not_a_flood() -> None:
    lines: list[str] = []
    observer = LineObserver(lines.append)
    observer.stage("fit")
    for _ in range(100):
        observer.round(RECORD, 1e-3)
    observer.round({**RECORD, "relative_gap": 1e-4}, 1e-3)
    assert lines[0] == "fit"
    assert len(lines) == 3  # the stage, the first round, the last
    assert "passes 7" in lines[1]
    assert "gap 1.00e-04" in lines[2]


def test_live_on_a_terminal() -> None:
    out = io.StringIO()
    with LiveObserver(Console(file=out, force_terminal=True, width=120)) as live:
        live.stage("fit")
        live.round(RECORD, 1e-3)
        live.note("[a note]")
    assert "fit" in out.getvalue()
    assert "gap 2.0e-01" in out.getvalue()
    assert "[a note]" in out.getvalue()


def test_summary_has_the_figures() -> None:
    out = io.StringIO()
    Console(file=out, width=100).print(trained_lines(RESULT)[0])
    for text in (
        "1,000 rows",
        "0.8500",
        "0.8000 to 0.9000",
        "converged",
        "12 passes",
        "Test on more rows than \\x1b[2J these.",
    ):
        assert text in out.getvalue()


def test_paths_are_not_wrapped() -> None:
    path = "runs/" + 60 * "long-" + "name"
    assert trained_lines(RESULT | {"run": path})[1:] == [f"run: {path}", f"report: {path}/report.html"]
    out = io.StringIO()
    with LiveObserver(Console(file=out, force_terminal=True, width=40)) as live:
        live.stage("fit")
        live.note(f"remove {path}")
    assert path in out.getvalue()


# ---- warned ------------------------------------------------------------------------------------


def test_warnings_that_differ_in_numbers_are_one_note():
    lines = []
    with warnings_to(LineObserver(lines.append), ignored=(DeprecationWarning,)):
        for n in (90, 91, 8.5):
            warnings.warn(f"{n} rows are few", UserWarning, stacklevel=1)
        warnings.warn("90 rows are few", RuntimeWarning, stacklevel=1)
        warnings.warn("not shown", DeprecationWarning, stacklevel=1)
    assert [line.strip() for line in lines] == [
        "UserWarning: 90 rows are few (and 2 more like it)",
        "RuntimeWarning: 90 rows are few",
    ]


def test_other_settings_of_warnings_come_back():
    with warnings_to(LineObserver(print)):
        pass
    with pytest.raises(UserWarning, match="an error here"):  # as the tests' own settings have it
        warnings.warn("an error here", UserWarning, stacklevel=1)
