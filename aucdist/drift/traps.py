"""What makes a test look better than new rows will: columns that give the label away, order, time, and rows on both sides.

All of it is found on the training rows, or on a sample of them, and said in sentences; nothing is changed for it.
"""

import re
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.date_parts import date_features
from aucdist.data.split import scrambled
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.rows import CsrRows

MOST_ROWS = 20_000
"""So many rows are looked at, half of each class where there are more."""
MOST_FEATURES = 2000
"""Features are not looked at where there are more of them."""
SUSPICIOUS = 0.99
"""An AUC of one column alone, from which on it is named."""
FEW = 20
"""Of fewer rows of a class nothing is said: chance separates them too often."""
LATER = 0.05
"""Such a share of training rows that are later than half of the test rows is named."""
MOST_NAMED = 5
IDENTIFIER = re.compile(r"(.*[_ .-])?(id|uuid|guid|key|index|row|nr|no|number)|.*[a-z]I[dD]", re.IGNORECASE)
"""Names of columns that number or name rows."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a data set, in the order of their ids.

    `values`: of shape (n_rows, n_features), float64.
    `positive`: of shape (n_rows,), bool.
    `row_id`: of shape (n_rows,), int64.
    """

    values: np.ndarray
    positive: np.ndarray
    row_id: np.ndarray


def sample_of(blocks: Blocks) -> Sample:
    """Return at most `MOST_ROWS` rows of blocks, chosen by their ids, whatever the blocks."""
    wide = blocks.n_features > MOST_FEATURES
    shares = [min(1.0, MOST_ROWS / 2 / max(1, n)) for n in (blocks.n_neg, blocks.n_pos)]
    found = blocks.without_memory().reduce(_sampled, shares, 0 if wide else blocks.n_features)
    order = np.argsort(np.concatenate(found["row_id"]), kind="stable")
    return Sample(*(np.concatenate(found[key])[order] for key in ("values", "positive", "row_id")))


def _sampled(block: Block, memory: None, shares: list[float], n_features: int) -> tuple[None, Summary]:
    """Return the rows of a block whose scrambled ids are small enough."""
    share = np.where(block.y == 1, shares[1], shares[0])
    chosen = np.flatnonzero(scrambled(block.row_id, 0) / 2.0**64 <= share)
    X = block.X[chosen][:, :n_features]
    values = sp.csr_matrix(X).toarray() if isinstance(block.rows, CsrRows) else np.asarray(X)
    return None, {
        "values": [values.astype(np.float64)],
        "positive": [block.y[chosen] == 1],
        "row_id": [block.row_id[chosen]],
    }


def single_auc(values: np.ndarray, positive: np.ndarray) -> float:
    """Return the AUC of one column alone, in the direction that is above one half; 0.5 where a class has too few values.

    Where values are missing it is the larger one of those that are there, and of their being there.
    """
    missing = np.isnan(values)
    found = _auc(values[~missing], positive[~missing])
    return max(found, _auc(missing.astype(np.float64), positive)) if missing.any() else found


def _auc(values: np.ndarray, positive: np.ndarray) -> float:
    n_pos = int(positive.sum())
    n_neg = len(positive) - n_pos
    if min(n_pos, n_neg) < FEW:
        return 0.5
    area = (float(rankdata(values)[positive].sum()) - n_pos * (n_pos + 1) / 2.0) / (n_pos * n_neg)
    return max(area, 1.0 - area)


def columns_alone(sample: Sample, schema: Schema) -> dict[str, float]:
    """Return the AUC of each column alone: of numbers as they are, of categories by their share of positive rows."""
    if not sample.values.shape[1]:
        return {}
    position = {name: j for j, name in enumerate(schema.feature_names)}
    found: dict[str, float] = {}
    categories = {
        name: [position[f"{name}={value}"] for value in values if f"{name}={value}" in position]
        for name, values in schema.categories.items()
    }
    of_category = {j: name for name, features in categories.items() for j in features}
    of_date = {part: name for name, parts in schema.dates.items() for part in date_features(name, parts)}
    for name, j in position.items():
        if (column := of_category.get(j)) is None:
            column = of_date.get(name, name)
            found[column] = max(found.get(column, 0.5), single_auc(sample.values[:, j], sample.positive))
        elif column not in found:
            flags = sample.values[:, categories[column]]
            code = np.where((flags > flags.min(axis=0)).any(axis=1), np.argmax(flags, axis=1), flags.shape[1])
            found[column] = categories_auc(code, sample.positive)
    return found


def categories_auc(code: np.ndarray, positive: np.ndarray) -> float:
    """Return the AUC of the share of positive rows in the category of each row; categories of few rows count as one.

    `code`, of shape (n_rows,), int: the category of each row, from 0.
    `positive`: of shape (n_rows,), bool.
    """
    most = int(code.max(initial=0)) + 1
    code = np.where(np.bincount(code, minlength=most)[code] < FEW, most, code)
    rows, positives = np.bincount(code, minlength=most + 1), np.bincount(code, positive, most + 1)
    return _auc((positives / np.maximum(rows, 1))[code], positive)


def traps_of(sample: Sample, schema: Schema) -> list[str]:
    """Return what is suspicious in training rows, a sentence each.

    `sample`: of the training rows.
    """
    alone = columns_alone(sample, schema)
    found = _leaks({name: area for name, area in alone.items() if area >= SUSPICIOUS})
    found += _identifiers(sample, schema)
    position = _auc(sample.row_id.astype(np.float64), sample.positive)
    if position >= SUSPICIOUS:
        found.append(
            f"The rows are in the order of their classes: the number of a row alone has an AUC of {position:.4f}. Whatever else "
            "follows that order (a file, a day, a device) gives the label away."
        )
    return found


def times_of(train: Sample, test: Sample, schema: Schema) -> list[str]:
    """Return what to say of columns of dates in which training rows are later than test rows."""
    found = []
    for name, parts in schema.dates.items():
        if "days" not in parts:
            continue
        j = schema.feature_names.index(f"{name}.days")
        if j >= train.values.shape[1] or not len(test.values):
            continue
        later = float(np.mean(train.values[:, j] > np.nanmedian(test.values[:, j])))
        if later > LATER:
            found.append(
                f"By column {name!r}, {later:.0%} of the training rows are later than half of the test rows: a model of "
                f"rows to come does not know the future. Test on a file of later rows, or choose by `folds: {{time: "
                f"{name}.days}}` in `aucdist cv`."
            )
    return found


def _leaks(alone: dict[str, float]) -> list[str]:
    named = sorted(alone, key=lambda name: (-alone[name], name))
    found = [
        f"Column {name!r} alone "
        + ("tells the classes apart without an error" if alone[name] == 1.0 else f"has an AUC of {alone[name]:.4f}")
        + f": if it is known only once the label is, leave it out by `drop: [{name}]`."
        for name in named[:MOST_NAMED]
    ]
    more = len(named) - MOST_NAMED
    return found + [f"{more} more columns alone have an AUC of {SUSPICIOUS} or more."] * (more > 0)


def _identifiers(sample: Sample, schema: Schema) -> list[str]:
    found = []
    for j, name in enumerate(schema.feature_names[: sample.values.shape[1]]):
        values = sample.values[:, j]
        if len(values) > FEW and len(np.unique(values)) == len(values):
            steps = np.diff(values)
            if IDENTIFIER.fullmatch(name) or (steps > 0.0).all() or (steps < 0.0).all():
                found.append(
                    f"Column {name!r} differs in every row and numbers the rows: leave it out by `drop: [{name}]`, as new rows "
                    "have other numbers."
                )
    return found[:MOST_NAMED]


def known_rows(known: int, checked: int) -> list[str]:
    """Return what to say of test rows that are among the training rows, too."""
    if not known:
        return []
    share = (
        f"{known:,} of the {checked:,} test rows that were looked up" if known > 1 else f"One of {checked:,} test rows"
    )
    have = "have" if known > 1 else "has"
    return [
        f"{share} {have} the features of a training row: {known / checked:.1%} of the test is known already. Where equal rows "
        "are the same case, choose settings by `folds: {duplicates: together}` in `aucdist cv`, and test on other cases."
    ]


def traps(train: Blocks, test: Blocks | None, schema: Schema, *, known: int = 0, checked: int = 0) -> tuple[str, ...]:
    """Return what should be known before anybody relies on a test, a sentence each.

    `train` and `test`: the training rows, and the test rows where there are some.
    `known` and `checked`: of so many test rows that were looked up, so many were among the training rows.
    """
    sample = sample_of(train)
    times = [] if test is None or not schema.dates else times_of(sample, sample_of(test), schema)
    return (*traps_of(sample, schema), *times, *known_rows(known, checked))
