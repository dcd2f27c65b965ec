"""The verdicts on the page "Papers" are those of the runs whose pages and tables are kept beside it."""

import csv
from collections import Counter, defaultdict
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[1] / "docs" / "pages"
PAGE = " ".join((PAGES / "papers.md").read_text(encoding="utf-8").split())


def rows(paper: str, *names: str) -> list[dict[str, str]]:
    table = []
    for name in names:
        with (PAGES / "papers" / f"reproduce-{paper}" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            table += csv.DictReader(file)
    return table


@pytest.mark.parametrize("paper", ["000", "001", "002", "003", "004"])
def test_the_page_of_each_run_is_kept_and_linked(paper: str) -> None:
    assert f"papers/reproduce-{paper}/report.html" in PAGE
    folder = PAGES / "papers" / f"reproduce-{paper}"
    assert "quick" not in (folder / "config.yaml").read_text(encoding="utf-8").partition("\nquick:")[0]
    assert (folder / "report.html").stat().st_size > 10_000


def test_000_cells_within_a_deviation() -> None:
    verdicts = Counter(row["verdict"] for row in rows("000", "table2") if row["paper"] and row["auc"])
    assert set(verdicts) == {"within 1", "better"}
    assert f"we have the data for {verdicts.total()} entries of Table 2. None of our values is worse" in PAGE
    assert f"and {verdicts['better']} are better by more" in PAGE


def test_001_sweeps() -> None:
    def sets_before(figure: str, slower: tuple[str, ...]) -> int:
        """Count the sets on which SCD is before these systems: in sweeps to 1e-2, or by the excess left if neither is there."""
        cells = {(row["dataset"], row["system"]): row for row in rows("001", figure)}

        def key(name: str, system: str) -> tuple[float, float]:
            row = cells[name, system]
            return float(row["sweeps"] or "inf"), 0.0 if row["sweeps"] else float(row["excess"])

        names = {name for name, _ in cells}
        assert len(names) == 5
        return sum(all(key(name, "scd") < key(name, other) for other in slower) for name in names)

    l1, l2 = (sets_before(figure, ("comid", "rda")) for figure in ("figure1", "figure2"))
    assert f"COMID and RDA is confirmed on {l1} of 5 sets with L1, and on {l2} of 5 with L2." in PAGE
    taken = sorted(int(row["sweeps"]) for row in rows("001", "figure2") if row["system"] == "sdcd")
    assert f"With L2, SDCD reaches the goal in {taken[0]} to {taken[-1]} sweeps" in PAGE
    assert sets_before("figure2", ("sdcd",)) == 0
    assert "The lead over SDCD is not confirmed on the 3 sets with more rows than features" in PAGE


@pytest.mark.parametrize(
    "name", ["diabetes", "fourclass", "german", "splice", "magic04", "a9a", "usps", "letter", "news20"]
)
def test_002_areas_of_tpauc(name: str) -> None:
    cells = [row for row in rows("002", "table1", "table2") if row["system"] == "tpauc" and row["auc"]]
    drawn = [row for row in cells if row["dataset"].rstrip("0123456789") == f"{name}-"]
    areas = sorted(float(row["auc"]) for row in drawn or [row for row in cells if row["dataset"] == name])
    text = f"| {name}, drawn | {areas[0]:.3f} to {areas[-1]:.3f} |" if drawn else f"| {name} | {areas[0]:.3f} |"
    assert text in PAGE
    assert len(areas) == (5 if drawn else 1)


@pytest.mark.parametrize(
    ("measure", "text"),
    [
        ("auc", "| AUC | GEV {gev} (first), probit {probit} | GEV on {best_gev} of 17"),
        ("brier", "| Brier score | probit {probit}, GEV {gev} | probit on {best_probit}, GEV on {best_gev} |"),
        ("calibration", "| calibration loss | probit {probit}, GEV {gev} | probit on {best_probit}, GEV and cloglog on"),
    ],
)  # fmt: skip
def test_003_mean_ranks(measure: str, text: str) -> None:
    ranks, best = defaultdict(list), Counter()
    for row in rows("003", "keel"):
        if row["measure"] == measure:
            ranks[row["system"]].append(float(row["rank"]))
            best[row["system"]] += float(row["rank"]) == 1.0
    means = {system: sum(of) / len(of) for system, of in ranks.items()}
    assert {len(of) for of in ranks.values()} == {17}
    assert min(means, key=lambda system: means[system]) == ("gev" if measure == "auc" else "probit")
    means_shown = {system: f"{means[system]:.1f}" for system in ("gev", "probit")}
    assert text.format(**means_shown, best_gev=best["gev"], best_probit=best["probit"]) in PAGE


def test_004_g_means() -> None:
    def counts(kernel: str) -> list[int]:
        cells = rows("004", f"low-{kernel}", f"high-{kernel}")
        test = {(row["dataset"], row["system"]): row for row in cells if row["measure"] == "test"}
        ours = {name: row for (name, system), row in test.items() if system == "u-zovr"}
        assert len(ours) == 16
        printed = sum(float(row["here"]) >= float(row["paper"]) for row in ours.values())
        above = [
            sum(float(row["here"]) > float(test[name, rival]["here"]) for name, row in ours.items())
            for rival in ("svm", "mwmote")
        ]
        return [printed, *above]

    linear, gaussian = counts("linear"), counts("rbf")
    said = f"the G-mean is at least the published value on {linear[0]} of 16 sets (linear) and on {gaussian[0]} of 16 (Gaussian)"
    assert said in PAGE
    assert f"| the published value (at least) | {linear[0]} | {gaussian[0]} |" in PAGE
    assert f"| the plain SVM of the same run | {linear[1]} | {gaussian[1]} |" in PAGE
    assert f"| MWMOTE of the same run | {linear[2]} (published: 12) | {gaussian[2]} (published: 16) |" in PAGE


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_004_seconds(kernel: str) -> None:
    cells = [row for row in rows("004", f"high-{kernel}") if row["measure"] == "seconds"]
    seconds = {(row["dataset"], row["system"]): float(row["here"]) for row in cells}
    ratios = sorted(seconds[name, "svm"] / taken for (name, system), taken in seconds.items() if system == "u-zovr")
    assert len(ratios) == 8
    assert f"{ratios[0]:.1f} to {ratios[-1]:.1f} times" in PAGE
