"""A small paper for the tests of reproductions: a table and learning curves on the digits."""

import csv
from pathlib import Path
from typing import Any

import yaml
from support.tables import table_beside

from flows.progress import LineObserver
from flows.reproduce.run import Paper, ReproduceOptions, reproduce

GRID = [0.01, 1.0]
PRINTED = "dataset,system,value,deviation\neight,all-pairs,0.9,0.01\n"


def paper(**changes: Any) -> dict[str, Any]:
    """Return a paper with a table and learning curves, on the digits and on a data set that is absent."""
    return table_beside(__file__) | changes


def only(name: str) -> dict[str, Any]:
    """Return the paper with one of its experiments."""
    return paper(experiments={name: paper()["experiments"][name]})


def write(folder: Path, config: dict[str, Any], targets: str = PRINTED) -> Path:
    """Write a paper's files and return the path of its configuration."""
    (folder / "table.csv").write_text(targets)
    path = folder / "paper.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def load_paper(paper: str, **options: Any) -> Paper:
    """Return the configuration of a paper, with these options of the command."""
    return ReproduceOptions(paper=paper, **options).load()


def run(path: Path, **options: Any) -> dict[str, Any]:
    """Reproduce a paper into the folder `out` beside its configuration."""
    options = {"output": str(path.parent / "out"), **options}
    return reproduce(load_paper(str(path), **options), LineObserver(lambda text: None))


def rows(folder: str, table: str) -> list[dict[str, str]]:
    """Return the rows of a table's CSV."""
    with (Path(folder) / f"{table}.csv").open() as file:
        return list(csv.DictReader(file))
