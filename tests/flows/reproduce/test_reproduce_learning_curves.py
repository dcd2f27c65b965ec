"""The kind `learning-curves`: its points against fits with fewer steps."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.small_paper import only, run, write

from aucdist import PairwiseHingeClassifier
from aucdist.data.shards.reading import read
from aucdist.data.sources import find
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.selection.folds import arrival, fold_numbers
from aucdist.solvers.pairs.objective import pairwise_objective

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_each_point_is_a_fit_with_fewer_steps(tmp_path: Path) -> None:
    result = run(write(tmp_path, only("ten")))
    tasks = Path(result["run"], "tasks", "ten", "eight")
    assert len(list(tasks.iterdir())) == 4
    block = read(find("digits")).block
    train = block.take(arrival(block.row_id, block_seed(0, 0, 1)))
    train = train.take(fold_numbers(train.row_id, train.y, 2, block_seed(0, 0, 0)) != 1)
    n_pos, n_neg = (train.y > 0).sum(), (train.y < 0).sum()
    for system in ("rows", "steps"):
        (of_fold,) = tasks.glob(f"{system}-0-1*")
        found = json.loads(of_fold.read_text())["result"]
        assert found["steps"] == [50, 100, 150, 200]
        assert found["optimum"]["relative_gap"] <= 1e-4
        assert min(found["objective"]) >= found["optimum"]["dual"]
        if system == "rows":
            pairs = np.cumsum(train.y > 0) * np.cumsum(train.y < 0)
            part = train.take(np.arange(np.flatnonzero(pairs <= 150)[-1] + 1))
            model = (
                PairwiseHingeClassifier()
                .set_params(lam=0.1, solver="oam-inf", solver__n_pairs=n_pos * n_neg)
                .fit(LocalBlocks([part]))
            )
        else:
            seed = block_seed(0, 0, 1) % 2**31
            model = (
                PairwiseHingeClassifier()
                .set_params(lam=0.1, solver="msgd", solver__steps=150, random_state=seed)
                .fit(LocalBlocks([train]))
            )
        assert found["objective"][2] == pytest.approx(pairwise_objective(LocalBlocks([train]), model.coef_[0], 0.1))
    page = Path(result["run"], "report.html").read_text()
    assert result["tables"] == {}
    for words in (
        "Figure 10: learning curves",
        "eight: 1 - AUC",
        "eight: Relative function value difference",
        "lam 0.1",
    ):
        assert words in page
