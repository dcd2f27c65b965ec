"""`aucdist watch` on a real cluster of two worker processes: the same counts as in one process."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.command_line import run


@pytest.mark.slow
def test_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("train", "more"):
        table = pd.DataFrame(rng.normal(size=(3000, 3)), columns=list("abc"))
        table["y"] = (rng.random(3000) < 1 / (1 + np.exp(1.0 - table["a"]))).astype(int)
        table.to_parquet(tmp_path / f"{name}.parquet", row_group_size=500)
    source = f"{{source: {tmp_path}/train.parquet, format: parquet, label: y, positive: 1}}"
    found = {}
    for cluster in ("none", "{kind: local, workers: 2}"):
        settings = (
            f"data={{source: {source}, test: {{fraction: 0.3}}}}",
            f"cluster={cluster}",
            "blocks=3",
            "model.tol=0.05",
        )
        args = [part for setting in settings for part in ("--set", setting)]
        found[cluster] = json.loads(run("train", "digits", "--output", tmp_path / "runs", "--json", *args)[0])["run"]
    here, there = found.values()
    for name in ("profile.json", "digests.npy"):
        assert Path(here, "model", name).read_bytes() == Path(there, "model", name).read_bytes()
    run("promote", here, tmp_path / "store")
    watched = []
    for i, args in enumerate(([], ["--cluster", "local"])):
        state = ("--state", tmp_path / f"state{i}", "--json")
        watched.append(json.loads(run("watch", tmp_path / "store", tmp_path / "more.parquet", *state, *args)[0]))
    assert watched[0]["found"] == watched[1]["found"]
    scores = [pd.read_parquet(tmp_path / f"state{i}" / "scores" / "more") for i in range(2)]
    pd.testing.assert_frame_equal(*scores)
