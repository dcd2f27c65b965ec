"""Whether the rows have the costs that an operating point is chosen by."""

from aucdist.errors import InputError
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
