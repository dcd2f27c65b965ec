import numpy as np
import pytest
from support.small_paper import load_paper


@pytest.fixture(scope="module")
def paper():
    return load_paper("002")


@pytest.mark.parametrize(("table", "names"), [("table1", {"usps", "letter"}), ("table2", {"news20"})])
def test_groups_of_classes_are_drawn_from_their_seeds(paper, table, names):
    drawn = set()
    for name, data in paper.experiments[table].datasets.items():
        base, _, seed = name.rpartition("-")
        if base not in names:
            assert (data.positive, data.group) == (None, None)
            continue
        assert data.group == base
        classes = sorted(int(c) for c in data.source.classes)
        half = np.random.default_rng(int(seed)).permutation(classes)[: len(classes) // 2]
        assert sorted(data.positive) == sorted(half.tolist())
        drawn.add((base, seed))
    assert drawn == {(base, str(seed)) for base in names for seed in range(5)}


def test_grid_is_the_papers(paper):
    for table in paper.experiments.values():
        assert table.grid == {name: [2.0**k for k in range(-10, 3)] for name in ("solver__eta", "lam")}
        assert (table.protocol.folds, table.protocol.repeats) == (5, 5)


def test_every_cell_is_held_to_the_print_minus_one_hundredth(paper):
    assert {table.tolerance for table in paper.experiments.values()} == {0.01}
    assert {table.protocol.choose for table in paper.experiments.values()} == {"once"}
    assert any("its rows are test rows of other folds" in departure for departure in paper.departures)


def test_each_printed_figure_has_its_cell(paper):
    printed = {"tpauc", "opauc", "oam-seq", "oam-gra", "uni-exp", "uni-squ"}
    for table, count in (("table1", 6 * 16), ("table2", 6 * 10)):
        targets = paper.experiments[table].targets
        assert len(targets) == count
        assert {t.system for t in targets} == printed
        assert {t.dataset for t in targets} == set(paper.experiments[table].datasets)
