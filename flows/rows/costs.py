"""Whether the rows have the costs that an operating point is chosen by."""

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Summary
from aucdist.engine.classes import AnyBlocks, ClassBlocks, of_all_classes
from aucdist.errors import InputError
from aucdist.metrics.costs import COST_COLUMN
from aucdist.scoring_costs import has_costs
from flows.config.data import DataConfig, source_of
from flows.config.operating_point import OperatingPointConfig


def check_cost_column(data: DataConfig, point: OperatingPointConfig | None) -> None:
    """Raise an InputError if the operating point needs costs, and the training data, or test data of their own, have none."""
    if point is None or not point.uses_cost_column:
        return
    sources = {"training": source_of(data)}
    if data.test is not None and data.test.is_apart:
        sources["test"] = source_of(data.test)
    for part, source in sources.items():
        if not has_costs(source):
            sharded = source.is_sharded
            needed = "shards of a source with `cost_column`" if sharded else "`cost_column` in the source"
            raise InputError(
                f"operating_point.cost says cost_column, but the {part} rows have no costs: they need {needed}"
            )


def check_costs_of_rows(rows: AnyBlocks, point: OperatingPointConfig | None) -> None:
    """Raise an InputError if wrong decisions on all training rows of a class cost nothing: no threshold is best then.

    `rows`: those that are fitted, of two classes or several, which are read once.
    """
    if point is None or not point.uses_cost_column:
        return
    sets = rows.sets if isinstance(rows, ClassBlocks) else None
    n_labels = 2 if sets is None else sets.members.shape[0]
    of_labels = of_all_classes(rows).without_memory().reduce(_costs_of_labels, n_labels)["costs"]
    classes = {"": np.array([-1, 1])}
    if sets is not None:
        classes = {f"class {name!r}: ": sets.signs(k) for k, name in enumerate(sets.names())}
    for name, signs in classes.items():
        for wrong, side, of_class in (("false_alarm", -1, "negatives"), ("miss", 1, "positives")):
            if point.wanted["cost"][wrong] == COST_COLUMN and not of_labels[signs == side].any():
                raise InputError(
                    f"{name}operating_point.cost: {wrong} says cost_column, which is 0 for all {of_class} of the training rows: "
                    "give it a number, or these rows a cost"
                )


def _costs_of_labels(block: Block, memory: None, n_labels: int) -> tuple[None, Summary]:
    """Add up the costs of the rows with each label: of negatives and positives, or in each set of classes."""
    assert block.cost is not None
    places = block.code if block.code is not None else (block.y > 0).astype(np.intp)
    return None, {"costs": np.bincount(places, weights=block.cost * block.weights(), minlength=n_labels)}
