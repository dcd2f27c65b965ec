"""The suite `groups` with systems that need no fit. No time is asserted."""

import numpy as np
import pytest

from aucdist.errors import InputError
from aucdist.metrics import group_auc_score
from benchmarks import groups as suite
from benchmarks.group_systems import GroupRows, System, by_folds


def rows_of(n_groups: int, size: int, most: int) -> GroupRows:
    """Return rows whose first column says much of the grade, and the second a little."""
    r = np.random.default_rng(7)
    group = np.repeat(np.arange(n_groups), size)
    grade = r.integers(0, most + 1, len(group)).astype(float)
    return GroupRows(grade[:, None] * (2.0, 0.3) + r.normal(size=(len(group), 2)), grade, group)


def column(j: int = 0):
    return j


def score_by(j: int, rows: GroupRows):
    return lambda X: X[:, j]


SYSTEMS = [
    System(suite.BESIDE, by_folds(column, [{"j": 1}, {"j": 0}], score_by)),
    System("second column", by_folds(column, [{"j": 1}], score_by)),
    System("gone", by_folds(column, [{}], score_by), "no_such_package"),
    System("slow", by_folds(column, [{}], score_by), slow=True),
]


def test_folds_choose_and_each_query_counts_once(monkeypatch):
    rows = rows_of(30, 10, 3)
    monkeypatch.setattr(suite, "queries", lambda: suite.GroupSet(rows, rows.group % 5, by_query=True))
    best, other = suite.groups(False, "lightgbm-rank", SYSTEMS)
    assert (best["system"], best["chosen"], other["system"]) == (suite.BESIDE, "j 0", "second column")
    assert best["groups"] == 30
    # Scaling by training rows keeps the order within a fold, and so within a query.
    assert best["GAUC"] == pytest.approx(group_auc_score(rows.grade, rows.X[:, 0], groups=rows.group), abs=1e-12)
    over = f"GAUC over {suite.BESIDE}"
    assert other[over] == pytest.approx(other["GAUC"] - best["GAUC"], abs=1e-12)
    assert other["GAUC over, low"] < other[over] < other["GAUC over, high"] < 0.0


def test_large_groups_have_rows_held_out_and_no_interval(monkeypatch):
    rows = rows_of(4, 60, 1)
    data = suite._with_rows_held_out(rows.X, np.where(rows.grade > 0, 1, -1), rows.group)
    monkeypatch.setattr(suite, "areas", lambda: data)
    (row, *_) = suite.groups(False, "covtype by area", SYSTEMS)
    at = data.fold == 0
    assert row["GAUC"] == pytest.approx(
        group_auc_score(rows.grade[at], rows.X[at, 0], groups=rows.group[at]), abs=1e-12
    )
    assert "GAUC low" not in row


def test_an_unknown_set():
    with pytest.raises(InputError, match="lightgbm-rank, covtype by area, kddcup99 by service"):
        next(suite.groups(False, "two"))
