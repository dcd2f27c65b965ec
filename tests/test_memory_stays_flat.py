"""Hundreds of fits and of scorings in one process: memory does not grow with their number."""

import gc
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.linear_models import save_model

from aucdist import PairwiseHingeClassifier
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.model import load_model
from aucdist.model.batch_scoring import plan_scoring, score_part, write_summary

TIMES, WARM = 600, 100
MAX_GROWTH = 16 * 2**20
"""Bytes. A fit or a scoring that kept its rows, 0.3 MB, would take ten times as much."""

pytestmark = pytest.mark.slow


def resident() -> int:
    """Return the bytes of memory that this process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 20))
    y = X[:, 0] + random.normal(size=2000) > 1
    path = tmp_path_factory.mktemp("flat") / "f.csv"
    names = [f"x{j}" for j in range(20)]
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=",".join([*names, "y"]), comments="", fmt="%.6g")
    return path


def test_fits(csv: Path) -> None:
    block = read(Source(source=str(csv), format="csv", label="y")).block
    before = 0
    for i in range(TIMES):
        PairwiseHingeClassifier(tol=0.1, lam=0.1).fit(block.X.copy(), block.y)
        if i == WARM:
            before = resident()
    assert resident() - before < MAX_GROWTH


def test_scorings(csv: Path, tmp_path: Path) -> None:
    source = Source(source=str(csv), format="csv", label="y")
    schema = read(source).schema
    save_model(
        str(tmp_path / "model"), coef=np.ones(20), intercept=0.0, schema=schema, about={}, reading=source.keys_for_scoring(),
        preprocessor=Preprocessor((), "none", None, None),
    )  # fmt: skip
    before = 0
    for i in range(TIMES):
        scoring = plan_scoring(str(tmp_path / "model"), source, str(tmp_path / "scores"))
        write_summary(scoring, [score_part(scoring.url, scoring.key, part) for part in scoring.reader.items])
        load_model(str(tmp_path / "model"))
        shutil.rmtree(tmp_path / "scores")
        if i == WARM:
            before = resident()
    assert resident() - before < MAX_GROWTH
