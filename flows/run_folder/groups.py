"""What a run says of pairs within groups: how many groups have some, and the measures of the test rows' groups."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc  # pa.ipc

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.metrics.groups import GroupWeight, measures_of_groups
from aucdist.solvers.pairs.groups import pair_groups


def group_results(train: Blocks, tables: Sequence[bytes], group_weight: GroupWeight = "pairs") -> dict[str, Any] | None:
    """Return the entry ``groups`` of ``aucdist train --json``; None where rows have neither groups nor grades.

    `tables`: the scores of the test rows, as `flows.run_folder.scores.count_and_tabulate` returns them; empty without
        test rows.
    `group_weight`, {"pairs", "groups"}: what a group weighs in the objective, and in the AUC within groups.
    Returns ``grouped`` and ``graded``: which of both they have; ``group_weight``. ``with_pairs`` and ``without_pairs``:
        the groups of training rows. ``measures``: of the test rows' groups ``value``, ``interval`` (95 %, from
        resampling groups), and ``groups`` and ``without``, those that have the measure and those that have none.
    """
    found = pair_groups(train)
    if found is None:
        return None
    counts: dict[str, Any] = {"grouped": train.has_groups, "graded": train.has_grades, "group_weight": group_weight}
    counts |= {"with_pairs": len(found.keys), "without_pairs": found.n_without_pairs}
    return counts | {"measures": _test_measures(tables, group_weight)}


def _test_measures(tables: Sequence[bytes], group_weight: GroupWeight) -> dict[str, dict[str, Any]]:
    """Return the measures within groups of scored rows by name; none where rows have no groups, or no group has a pair."""
    if not tables:
        return {}
    table = pa.concat_tables([pa.ipc.open_stream(one).read_all() for one in tables])
    if "group" not in table.column_names:
        return {}
    label = "grade" if "grade" in table.column_names else "y"
    values = table[label].to_numpy()
    y = np.where(values > 0, values, 0) if label == "y" else values - min(0.0, float(values.min()))
    measures = measures_of_groups(y, table["score"].to_numpy(), table["group"].to_numpy(), group_weight)
    try:
        return {
            name: {
                "value": of.mean, "interval": list(of.interval()), "groups": len(of.values), "without": of.n_without,
            }
            for name, of in measures
        }  # fmt: skip
    except InputError:  # no group has a pair
        return {}
