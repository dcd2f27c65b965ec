"""The suite `trees`: additive models and landmarks beside boosted trees and a kernel machine, by AUC on held-out rows.

Every system chooses its own settings by inner folds of the training rows, or has none to choose; its CPU seconds include the
choice. The splits are stratified by class, by seeds that were not used while the maps were made. With several processes splits
are measured side by side, each by one thread.
"""

import functools
import itertools
import multiprocessing
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from aucdist.data.block import Block
from aucdist.data.sources import catalog
from aucdist.errors import InputError
from aucdist.metrics import average_precision_score, roc_auc_score
from aucdist.metrics.compare import corrected_t_test
from benchmarks import common
from benchmarks.common import TEST_SHARE, Row, chosen_names
from benchmarks.tree_systems import Contestant, all_contestants
from benchmarks.within import cpu_seconds

SEEDS = (9001, 9002, 9003, 9004, 9005)
LARGE = ("magic04", "covtype-ramp-test", "skin_nonskin", "a9a", "letter-recognition")
"""They take longest, so they come first: the end of a run is not one process that the others wait for."""
RARE = 60
"""A set of KEEL is called rare if it has so many positives at most, and nine negatives for each."""
NEAR = 0.005
WARM_UP = "glass2"
"""The data set that each process fits by the systems before it measures them."""
CONDITIONS = f"{int(100 * TEST_SHARE)} % of each class held out, split seeds {SEEDS[0]} to {SEEDS[-1]}; CPU seconds"


Task = tuple[str, int]
"""A data set and the seed of a split."""


def trees(
    slow_peers: bool,
    only: str | None = None,
    splits: int = len(SEEDS),
    processes: int = 1,
    contestants: Sequence[Contestant] | None = None,
) -> Iterator[Row]:
    """Yield a row for each set, split and system; after each set the means, beside the best peer; in the end the goals.

    Parameters
    ----------
    slow_peers : bool
        Also explainable boosting machines.
    only : str, optional
        Names of data sets, separated by commas.
    splits : int
        Random splits of each set, at most five.
    processes : int
        Splits that are measured side by side, each in a process of its own with one thread.
    contestants : sequence of Contestant, optional
        In place of all that are installed. With several processes they are pickled.
    """
    if not 1 <= splits <= len(SEEDS):
        raise InputError(f"--splits is {splits}; 1 to {len(SEEDS)} splits are there")
    if processes < 1:
        raise InputError(f"--processes must be at least 1; got {processes}")
    systems = [contestant for contestant in contestants or all_contestants() if contestant.is_installed]
    tasks = [(name, seed) for name in _names(only) for seed in SEEDS[:splits]]
    means: list[Row] = []
    measured: Iterator[tuple[Task, Iterable[Row]]] = ((task, _rows_of(task, systems, slow_peers)) for task in tasks)
    if processes > 1:
        measured = _side_by_side(tasks, processes, contestants, slow_peers)
    for name, of_set in itertools.groupby(measured, lambda pair: pair[0][0]):
        measured_rows: list[Row] = []
        for _, rows in of_set:
            for row in rows:
                if "system" in row or not measured_rows:  # a set that is left out is so on each split
                    measured_rows.append(row)
                    yield row
        own = list(_means(name, [row for row in measured_rows if "system" in row], systems))
        means += own
        yield from own
    yield from _goals(means, systems)


def _rows_of(task: Task, systems: Sequence[Contestant], slow_peers: bool) -> Iterator[Row]:
    """Yield a row for each of the systems on a split."""
    name, seed = task
    try:
        train, test = split_and_scale(name, seed)
    except InputError as error:  # such as missing values, for which most systems have no place
        yield {"set": name, "chosen": f"left out: {error}"[:200]}
        return
    for system in systems:
        if system.runs(train.n_samples, slow_peers):
            yield _measure(system, name, seed, train, test)


_SYSTEMS: list[Contestant] = []
"""The systems of a process that measures splits: those of the parent's may not be picklable, so it has its own."""


def _side_by_side(
    tasks: Sequence[Task], processes: int, contestants: Sequence[Contestant] | None, slow_peers: bool
) -> Iterator[tuple[Task, Iterable[Row]]]:
    """Yield the tasks in their order, each with its rows, which are measured in several processes."""
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _prepare, (contestants,))
    try:
        yield from zip(tasks, pool.map(functools.partial(_measure_split, slow_peers), tasks), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare(contestants: Sequence[Contestant] | None) -> None:
    """Fit each system once, so that its libraries are there and compiled; then leave one thread to those."""
    from threadpoolctl import threadpool_limits

    warnings.simplefilter("ignore")
    _SYSTEMS[:] = [contestant for contestant in contestants or all_contestants() if contestant.is_installed]
    for _ in _rows_of((WARM_UP, SEEDS[0]), _SYSTEMS, slow_peers=False):
        pass
    threadpool_limits(1)


def _measure_split(slow_peers: bool, task: Task) -> list[Row]:
    return list(_rows_of(task, _SYSTEMS, slow_peers))


def _names(only: str | None) -> list[str]:
    known = [*LARGE, *(name for name, source in catalog().items() if source.format == "keel")]
    return chosen_names(only, known)


def split_and_scale(name: str, seed: int) -> tuple[Block, Block]:
    """Return the training and test rows of a split, dense and standardised by the training rows; trees do not mind."""
    train, test = common.split_and_scale(name, seed)
    return _dense(train), _dense(test)


def _dense(block: Block) -> Block:
    X = block.X.toarray() if hasattr(block.X, "toarray") else block.X
    return Block.of(np.asarray(X, dtype=np.float64), block.y)


def _measure(system: Contestant, name: str, seed: int, train: Block, test: Block) -> Row:
    row: Row = {"set": name, "split": seed, "system": system.name, "rows": train.n_samples, "features": train.n_features,
                "positives": int((train.y > 0).sum())}  # fmt: skip
    start = cpu_seconds()  # each system has one thread, so that other work on the machine hardly counts
    try:
        score, chosen = system.fit(train)
    except Exception as error:  # the others still count; the table says what failed
        return row | {"chosen": f"failed: {type(error).__name__}: {error}"[:200]}
    seconds = cpu_seconds() - start
    scores = np.asarray(score(test.X), dtype=np.float64)
    return row | {
        "AUC": float(roc_auc_score(test.y, scores)), "PR-AUC": float(average_precision_score(test.y, scores)),
        "seconds": seconds, "chosen": chosen,
    }  # fmt: skip


# ---- summaries ----------------------------------------------------------------------------------------------------------


def _means(name: str, rows: list[Row], systems: Sequence[Contestant]) -> Iterator[Row]:
    """Yield the means over the splits, with the difference to the peer of the best mean AUC and its corrected interval."""
    by_system = {s.name: [row for row in rows if row["system"] == s.name and "AUC" in row] for s in systems}
    whole = {
        key: splits for key, splits in by_system.items() if splits and len(splits) == max(map(len, by_system.values()))
    }
    peers = [system.name for system in systems if not system.ours and system.name in whole]
    best = max(peers, key=lambda key: _mean(whole[key], "AUC"), default=None)
    for key, of_system in whole.items():
        row: Row = {
            "set": name,
            "split": "mean",
            "system": key,
            **{k: of_system[0][k] for k in ("rows", "features", "positives")},
        }
        row |= {measure: _mean(of_system, measure) for measure in ("AUC", "PR-AUC", "seconds")}
        if best is not None and key != best:
            differences = [a["AUC"] - b["AUC"] for a, b in zip(of_system, whole[best], strict=True)]
            row |= {"best peer": best, "AUC - best peer": float(np.mean(differences))}
            if len(differences) > 1:
                test = corrected_t_test(differences, TEST_SHARE / (1 - TEST_SHARE))
                row |= {"low": test.low, "high": test.high, "p": test.p_value}
        yield row


def _mean(rows: Sequence[Row], measure: str) -> float:
    return float(np.mean([row[measure] for row in rows]))


def _goals(means: list[Row], systems: Sequence[Contestant]) -> Iterator[Row]:
    """Yield for each system over all its sets: means, how often it is near the best peer, rare sets, the worst loss to linear."""
    names = list(dict.fromkeys(row["set"] for row in means))
    rows = {(row["set"], row["system"]): row for row in means}
    keel = {name for name, source in catalog().items() if source.format == "keel"}
    for system in systems:
        own = {name: rows[name, system.name] for name in names if (name, system.name) in rows}
        if not own:
            continue
        own_rows = list(own.values())
        row: Row = {"set": f"{len(own)} sets", "split": "all", "system": system.name}
        row |= {measure: _mean(own_rows, measure) for measure in ("AUC", "PR-AUC", "seconds")}
        peers = [peer.name for peer in systems if not peer.ours and peer is not system]
        best = {name: max((rows[name, p]["AUC"] for p in peers if (name, p) in rows), default=None) for name in own}
        beside = {name: area for name, area in best.items() if area is not None}
        if beside:
            near = sum(own[name]["AUC"] >= area - NEAR for name, area in beside.items())
            row[f"within {NEAR:g} of the best peer"] = f"{near} of {len(beside)}"
        rare = [row for name, row in own.items() if name in keel and _is_rare(row)]
        if rare:
            row |= {"rare sets": len(rare), "AUC of rare sets": _mean(rare, "AUC")}
        losses = [rows[name, "linear"]["AUC"] - own[name]["AUC"] for name in own if (name, "linear") in rows]
        yield row | ({"most below linear": max(losses)} if losses else {})


def _is_rare(row: Row) -> bool:
    positives = row["positives"] / (1 - TEST_SHARE)
    return bool(positives <= RARE and row["rows"] >= 10 * row["positives"])
