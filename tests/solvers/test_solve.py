"""The loop that runs a solver: what it needs, and what it passes on."""

import numpy as np
import pytest

from aucdist.solvers.base import Round, solve


def test_a_solver_without_a_round_is_refused():
    with pytest.raises(ValueError, match="must yield its start"):
        solve(iter([]), tol=1e-3, max_passes=10)


def test_a_callback_gets_copies_of_all_that_a_round_measures():
    records = []
    rounds = (Round(np.ones(1), 1.0, 0.0, passes, measures={"zeros": 0.5}) for passes in (1, 2))
    solution = solve(rounds, tol=1e-3, max_passes=2, callback=records.append)
    assert records == solution.records
    records[0]["zeros"] = 1.0
    assert [record["zeros"] for record in solution.records] == [0.5, 0.5]
