import numpy as np
import pytest

from aucdist.papers.sdcd.dual import DualTable
from aucdist.papers.sdcd.kernels import ENTRY

pytestmark = pytest.mark.nojit


def entries_of(values):
    return np.array(list(values.items()), dtype=ENTRY)


def test_table_grows_and_forgets_zeros():
    values = {p * 7 + 1: (p % 4) / 4 for p in range(3000)}
    table = DualTable.for_entries(0).plus(entries_of(values))
    assert table.used == 2250 <= table.room
    assert table.total() == pytest.approx(sum(values.values()))
    assert [tuple(e) for e in table.stored()] == [(p, v) for p, v in values.items() if v]
    grown = table.plus(entries_of({2: 0.5, 8: 0.25}))
    assert grown.total() == pytest.approx(table.total() + 0.75)
    assert table.total() == pytest.approx(sum(values.values()))
    few = table.copy()
    assert (few.used, few.total()) == (table.used, table.total())
    few.entries["value"][few.entries["number"] % 2 == 0] = 0.0
    few.entries["value"][few.entries["number"] % 3 == 0] = 0.0
    assert few.copy().used < few.used / 2
    assert few.copy().total() == pytest.approx(few.total())


def test_table_towards_another():
    one, other = (
        DualTable.for_entries(0).plus(entries_of({1: 1.0, 2: 0.5})),
        DualTable.for_entries(0).plus(entries_of({1: 1.0, 3: 1.0})),
    )
    way = one.towards(other, 1 / 3)
    assert way.stored()["number"].tolist() == [1, 2, 3]
    np.testing.assert_allclose(way.stored()["value"], [1.0, 1 / 3, 1 / 3])
    assert way.stored()["value"].max() <= 1.0
