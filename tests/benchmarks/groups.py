"""The suite `groups`: pairs within groups beside rankers of trees and linear peers, by measures of held-out rows.

``lightgbm-rank`` has 251 queries with grades. They are divided into five folds; each system is fitted five times, chooses its
settings by inner folds of queries, and scores the queries that it has not seen, so that each query counts once. Intervals and
differences resample queries. The other sets have two classes, and few large groups, from each of which rows are held out; their
settings are chosen by folds of rows, stratified by group and class.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from aucdist.data.block import each_of
from aucdist.data.preprocess import fit_preprocessor
from aucdist.data.shards.reading import read
from aucdist.data.sources import find_source, parse_source
from aucdist.metrics.groups import GroupMetric, group_auc, group_metric_difference, group_ndcg
from benchmarks.common import Row, chosen_names
from benchmarks.group_systems import GroupRows, System, all_systems

FOLDS, INNER_FOLDS, SEED = 5, 3, 77
HELD_OUT = 3
"""One of so many rows of a large group is held out."""
MAX_ROWS = 20_000
"""Rows that are drawn from larger sets."""
BESIDE = "LightGBM lambdarank"
"""The system that those after it are compared with."""
CONDITIONS = f"outer folds {FOLDS}, inner folds {INNER_FOLDS}, seed {SEED}, one thread"


@dataclass(frozen=True, eq=False)
class GroupSet:
    """A data set, and which rows are held out together."""

    rows: GroupRows
    fold: np.ndarray
    by_query: bool

    def choice_folds(self, train: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the inner folds of training rows, as positions among these."""
        rows = self.rows.take(train)
        if self.by_query:
            return list(GroupKFold(INNER_FOLDS, shuffle=True, random_state=SEED).split(rows.X, groups=rows.group))
        strata = 2 * np.unique(rows.group, return_inverse=True)[1] + (rows.grade > 0)
        return list(StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=SEED).split(rows.X, strata))


def groups(slow_peers: bool, only: str | None = None, systems: Sequence[System] | None = None) -> Iterator[Row]:
    """Yield a row for each set and system.

    Parameters
    ----------
    slow_peers : bool
        Also `features: auto`, which fits some hundred models for each fold.
    only : str, optional
        Names of data sets, separated by commas.
    systems : sequence of System, optional
        In place of all that are installed.
    """
    known = {"lightgbm-rank": queries, "covtype by area": areas, "kddcup99 by service": services}
    for name in chosen_names(only, known):
        yield from _rows_of(name, known[name](), systems or all_systems(), slow_peers)


def _rows_of(name: str, data: GroupSet, systems: Sequence[System], slow_peers: bool) -> Iterator[Row]:
    rows, scored = data.rows, data.fold >= 0
    beside: dict[str, GroupMetric] = {}
    for system in systems:
        if not system.runs(rows, slow_peers):
            continue
        start = time.perf_counter()
        scores, chosen = _held_out_scores(system, data)
        seconds = time.perf_counter() - start
        metrics = _measures(rows.grade[scored], scores[scored], rows.group[scored], data.by_query)
        row: Row = {"data": name, "rows": len(rows.grade), "groups": len(metrics["GAUC"].values), "system": system.name}
        for measure, values in metrics.items():
            row[measure] = values.mean
            if not data.by_query:  # a few groups make no interval
                continue
            estimate = values.interval()
            row[f"{measure} low"], row[f"{measure} high"] = estimate.low, estimate.high
            if beside:
                test = group_metric_difference(values, beside[measure])
                row |= {f"{measure} over {BESIDE}": test.value, f"{measure} over, low": test.low,
                        f"{measure} over, high": test.high}  # fmt: skip
        if system.name == BESIDE:
            beside = metrics
        yield row | {"seconds": seconds, "chosen": chosen}


def _held_out_scores(system: System, data: GroupSet) -> tuple[np.ndarray, str]:
    """Return the score of each row by the fit that has not seen it, after scaling by its training rows; and what was chosen."""
    scores, chosen = np.zeros(len(data.fold)), []
    for fold in np.unique(data.fold[data.fold >= 0]):
        train, held_out = np.flatnonzero(data.fold != fold), data.fold == fold
        scaling = StandardScaler().fit(data.rows.X[train])
        rows = replace(data.rows, X=scaling.transform(data.rows.X))
        score, text = system.fit(rows.take(train), data.choice_folds(train))
        scores[held_out] = score(rows.X[held_out])
        chosen.append(text)
    return scores, "; ".join(dict.fromkeys(filter(None, chosen)))


def _measures(grade: np.ndarray, scores: np.ndarray, group: np.ndarray, graded: bool) -> dict[str, GroupMetric]:
    measures = {"GAUC": group_auc(grade, scores, groups=group)}
    if graded:
        measures["NDCG@10"] = group_ndcg(grade, scores, groups=group, k=10)
        measures["NDCG@10, 2^grade"] = group_ndcg(grade, scores, groups=group, k=10, gain="exponential")
    return measures


# ---- data sets ----------------------------------------------------------------------------------------------------------


def queries() -> GroupSet:
    """Return the 251 queries of LightGBM's example, training and test file together, in folds of whole queries."""
    parts = []
    for k, name in enumerate(("lightgbm-rank", "lightgbm-rank.t")):
        source = {
            "source": f"rank/{name}.xz",
            "format": "svmlight",
            "qid": "use",
            "labels": "grades",
            "n_features": 300,
        }
        block = read(parse_source(source, name)).block
        parts.append((block.X.toarray(), block.grade, block.group + 10_000 * k))
    X, grade, group = (np.concatenate(part) for part in zip(*parts, strict=True))
    rows = GroupRows(X, grade, group)
    fold = np.zeros(len(grade), dtype=np.int64)
    for number, (_, held_out) in enumerate(GroupKFold(FOLDS, shuffle=True, random_state=SEED).split(X, groups=group)):
        fold[held_out] = number
    return GroupSet(rows, fold, by_query=True)


def areas() -> GroupSet:
    """Return covtype's sample with the wilderness area for a group: class 2 against the rest within each."""
    data = read(find_source("covtype-20k"))
    named = [f"Wilderness_Area{k}" for k in range(1, 5)]
    at = [list(data.schema.feature_names).index(name) for name in named]
    X = np.asarray(data.block.X, dtype=np.float64)
    return _with_rows_held_out(np.delete(X, at, axis=1), data.block.y, X[:, at].argmax(axis=1))


def services() -> GroupSet:
    """Return a sample of KDD Cup 99 with the service for a group: the rare attacks against the rest within each."""
    data = read(find_source("kddcup99"))
    scaling = fit_preprocessor(
        each_of([data.block]),
        data.schema.feature_names,
        log1p="numeric",
        scale="none",
        categories=data.schema.categories,
    )
    block, names = scaling.transform(data.block), data.schema.feature_names
    at = [k for k, name in enumerate(names) if name.startswith("service")]
    r = np.random.default_rng(SEED)
    rare, rest = np.flatnonzero(block.y > 0), np.flatnonzero(block.y < 0)
    some = np.concatenate([rare[r.permutation(len(rare))[:4000]], rest[r.permutation(len(rest))[: MAX_ROWS - 4000]]])
    X = block.X[some]
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    return _with_rows_held_out(np.delete(X, at, axis=1), block.y[some], X[:, at].argmax(axis=1))


def _with_rows_held_out(X: np.ndarray, y: np.ndarray, group: np.ndarray) -> GroupSet:
    r = np.random.default_rng(SEED)
    fold = np.where(r.integers(0, HELD_OUT, len(y)) == 0, 0, -1)
    return GroupSet(GroupRows(X, (y > 0).astype(float), group), fold, by_query=False)
