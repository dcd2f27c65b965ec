"""Folds of a search keep the groups of the source whole."""

import numpy as np
import pandas as pd
import pytest
import yaml
from support.searches import load_cv

from aucdist.errors import InputError
from flows.compute.clusters import Workers
from flows.cv.rows import open_search
from flows.progress.console import LineObserver

SILENT = LineObserver(lambda text: None)


def opened(folder, *settings):
    r = np.random.default_rng(0)
    user = r.integers(0, 40, 600)
    frame = pd.DataFrame(
        {"a": r.normal(size=600), "user": [f"u{u}" for u in user], "y": r.integers(0, 2, 600), "b": user % 7}
    )
    frame.to_csv(folder / "rows.csv", index=False)
    source = {"source": str(folder / "rows.csv"), "format": "csv", "label": "y", "positive": 1, "groups": "user"}
    content = {"name": "users", "data": {"source": source}, "cluster": "none", "folds": {"number": 3, "repeats": 1}}
    content |= {"grid": {"lam": [0.1, 1.0]}}
    (folder / "users.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    config = load_cv(str(folder / "users.yaml"), list(settings), str(folder / "runs"))
    return frame, open_search(config, SILENT).make_folds(config, Workers(), SILENT)


def test_groups_stay_whole(tmp_path):
    frame, found = opened(tmp_path)
    for fold in found.folds.outer():
        sides = found.folds.sides(fold)
        train, held_out = (set(frame["user"][side]) for side in (sides.train, sides.held_out))
        assert train
        assert held_out
        assert not train & held_out


def test_two_ways_of_keeping_rows_together(tmp_path):
    with pytest.raises(InputError, match=r"leave out `folds\.groups`"):
        opened(tmp_path, "folds.duplicates=together")


def test_a_gap_before_the_held_out_rows_of_time(tmp_path):
    settings = ["data.source.groups=null", "data.source.drop=[user]", "folds.time=a"]
    frame, without = opened(tmp_path, *settings)
    _, found = opened(tmp_path, *settings, "folds.gap_rows=10", "folds.gap_time=0.25")
    time = frame["a"].to_numpy()
    for fold in found.folds.outer():
        sides, wider = found.folds.sides(fold), without.folds.sides(fold)
        assert (sides.held_out == wider.held_out).all()
        latest = np.sort(time[wider.train])[:-10]
        known = latest[latest <= time[sides.held_out].min() - 0.25]
        assert np.sort(time[sides.train]).tolist() == known.tolist()
        assert len(known) < wider.train.sum() - 10
