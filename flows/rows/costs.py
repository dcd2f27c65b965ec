"""Whether the rows have the costs that an operating point is chosen by."""

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.engine.classes import AnyBlocks, ClassBlocks
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
    if data.test is not None and data.test.fraction is None:
        sources["test"] = source_of(data.test)
    for part, source in sources.items():
        if not has_costs(source):
            sharded = source.format_of().is_sharded
            given = "shards of a source with `cost_column`" if sharded else "`cost_column` in the source"
            raise InputError(
                f"operating_point.cost says cost_column, but the {part} rows have no costs: they need {given}"
            )


def check_costs_of_rows(rows: AnyBlocks, point: OperatingPointConfig | None) -> None:
    """Raise an InputError if wrong decisions on all training rows of a class cost nothing: no threshold is best then.

    `rows`: those that are fitted, of two classes or several.
    """
    if point is None or not point.uses_cost_column:
        return
    named: dict[str, Blocks] = {}
    if isinstance(rows, ClassBlocks):
        named = {f"class {name!r}: ": rows.of_class(k) for k, name in enumerate(rows.sets.names())}
    else:
        named[""] = rows
    for name, blocks in named.items():
        found = blocks.without_memory().reduce(_costs_of_classes)
        for wrong, of_class in (("false_alarm", "negatives"), ("miss", "positives")):
            if point.wanted["cost"][wrong] == COST_COLUMN and found[of_class] == 0:
                raise InputError(
                    f"{name}operating_point.cost: {wrong} says cost_column, which is 0 for all {of_class} of the training rows: "
                    "give it a number, or these rows a cost"
                )


def _costs_of_classes(block: Block, memory: None) -> tuple[None, Summary]:
    assert block.cost is not None
    cost = block.cost * block.weights()
    return None, {"negatives": float(cost[block.y < 0].sum()), "positives": float(cost[block.y > 0].sum())}
