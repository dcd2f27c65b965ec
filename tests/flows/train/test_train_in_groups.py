"""A training run of pairs within groups: the split, the scores, the measures and the pages."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from aucdist.metrics.groups import auc_of_groups, ndcg_of_groups
from aucdist.report.text import group_rows
from flows.progress.console import LineObserver
from flows.run_folder.scores import read_scores
from flows.train import run as pipeline
from flows.train.config import load_train


def written(folder, *, graded):
    """Write rows of 60 users, one of whom has rows of one class only, and a configuration."""
    r = np.random.default_rng(0)
    user = r.integers(0, 60, 2000)
    X = r.normal(size=(2000, 3))
    X[:, 2] = r.normal(size=60)[user]
    relevance = X[:, 0] + 2 * X[:, 2] + r.normal(size=2000)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(user=[f"u{u}" for u in user])
    frame["label"] = np.digitize(relevance, [-1, 0, 1]) if graded else (relevance > 0).astype(int)
    frame.loc[frame["user"] == "u7", "label"] = 0
    frame.to_csv(folder / "rows.csv", index=False)
    source = {"source": str(folder / "rows.csv"), "format": "csv", "label": "label", "groups": "user"}
    source |= {"labels": "grades"} if graded else {"positive": 1}
    content = {
        "name": "users", "data": {"source": source, "test": {"fraction": 0.3}}, "model": {"lam": 0.01},
        "cluster": "none", "blocks": 3,
    }  # fmt: skip
    (folder / "users.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return frame


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("direct", ["false", "true"])
def test_run(tmp_path, graded, direct):
    frame = written(tmp_path, graded=graded)
    config = load_train(str(tmp_path / "users.yaml"), [f"data.direct={direct}"], str(tmp_path / "runs"))
    result = pipeline.train(config, LineObserver(lambda text: None))
    scores = read_scores(result["run"])
    test_users = set(frame["user"][scores["row_id"]])
    train = frame.drop(index=scores["row_id"])
    assert not test_users & set(train["user"])  # users stay whole
    assert 0.25 < len(scores) / 2000 < 0.36
    labels = scores["grade"] if graded else (scores["y"] > 0).astype(int)
    assert np.array_equal(labels, frame["label"][scores["row_id"]])
    groups = result["groups"]
    with_pairs = int((train.groupby("user")["label"].nunique() > 1).sum())
    assert (groups["with_pairs"], groups["without_pairs"]) == (with_pairs, train["user"].nunique() - with_pairs)
    found = auc_of_groups(labels, scores["score"], groups=scores["group"])
    assert groups["measures"]["group_auc"]["value"] == found.mean
    assert groups["measures"]["group_auc"]["interval"] == list(found.interval())
    assert found.mean > 0.7
    ndcg = ndcg_of_groups(labels, scores["score"], groups=scores["group"])
    assert groups["measures"]["ndcg@10"]["value"] == ndcg.mean
    page = Path(result["run"], "report.html").read_text(encoding="utf-8")
    for _, value in group_rows(groups):
        assert value in page
    assert "of one of" in page


def test_rows_without_groups_say_nothing_of_them(tmp_path):
    config = load_train("digits", ["cluster=none", "model.tol=0.05"], str(tmp_path))
    assert "groups" not in pipeline.train(config, LineObserver(lambda text: None))
