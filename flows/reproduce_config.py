"""What a reproduction is told: the systems, data sets, protocol and printed figures of a paper's tables and figures."""

import csv
import io
import itertools
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from aucdist.data.catalog import find
from aucdist.data.source import ClassName, Source
from aucdist.errors import InputError, unknown
from flows.config import ClusterConfig, ModelConfig, NoCluster, Strict
from flows.loading import configs_folder, explain, find_config, read_mapping

FILE = "paper.yaml"
Grid = dict[str, list[int | float]]


class DataSet(Strict):
    """A data set of a paper: the catalog's entry that stands for it, and what is different about it."""

    name: str = Field(description="A data set of the catalog; where its files are absent, its cells are not run")
    positive: ClassName | list[ClassName] | None = Field(default=None, description="Overrides the catalog's")
    lam: float | None = Field(default=None, gt=0, description="For a course: the lam of every system")
    note: str | None = Field(default=None, description="What the page says of it")

    @model_validator(mode="after")
    def _in_catalog(self) -> "DataSet":
        find(self.name)
        return self

    @property
    def source(self) -> Source:
        """The entry of the catalog."""
        source = find(self.name)
        return source if self.positive is None else source.model_copy(update={"positive": self.positive})


class System(Strict):
    """A system of a paper: an estimator with parameters."""

    model: ModelConfig
    grid: Grid | None = Field(default=None, description="Instead of the table's")
    steps: str | None = Field(
        default=None, description="For a course: the parameter that limits the steps; without it rows arrive one by one"
    )

    def points(self, grid: Grid) -> list[dict[str, Any]]:
        """Return the parameters of every point of the grid, each accepted by the estimator."""
        own = {k: v for k, v in self.model.model_dump(exclude={"estimator"}).items() if v is not None}
        grid = grid if self.grid is None else self.grid
        found = [own | dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        for point in found:
            ModelConfig(estimator=self.model.estimator, **point)
        return found


class Protocol(Strict):
    """How the rows are parted and the parameters are chosen."""

    folds: int = Field(default=5, ge=2)
    repeats: int = Field(default=4, ge=1, description="Partitions into folds")
    seed: int = Field(default=0, ge=0)
    choose: Literal["best", "cv", "once"] = Field(
        default="best",
        description="`best`: the point of the grid with the highest mean over these very test folds, which flatters. "
        "`cv`: each time the best by folds of the training part. `once`: for all the best by folds of the first training part",
    )
    inner_folds: int = Field(default=5, ge=2, description="For `cv` and `once`")
    scale: Literal["none", "standard", "minmax", "maxabs", "unit-row"] = "none"


class Target(Strict):
    """A printed figure."""

    dataset: str
    system: str
    value: float
    deviation: float | None = None


class Table(Strict):
    """Test AUCs of systems on data sets, held against printed ones."""

    kind: Literal["table"]
    title: str
    systems: dict[str, System]
    datasets: dict[str, DataSet]
    protocol: Protocol = Field(default_factory=Protocol)
    grid: Grid
    targets: list[Target] = Field(default=[], description="Or a CSV beside this file with these columns")
    figure: str | None = Field(default=None, description="Title of a figure: the mean AUC at every point of the grid")

    @model_validator(mode="after")
    def _accepted(self) -> "Table":
        for system in self.systems.values():
            system.points(self.grid)
        for target in self.targets:
            for kind, name, known in (
                ("data set", target.dataset, self.datasets), ("system", target.system, self.systems),
            ):  # fmt: skip
                if name not in known:
                    raise unknown(f"{kind} of a target", name, known)
        if self.figure is not None and len(self.grid) != 1:
            raise InputError("`figure` draws the AUC against one parameter, but `grid` has another number of them")
        return self


class Course(Strict):
    """How AUC and objective go on while the systems take their steps, all at the same lam."""

    kind: Literal["course"]
    title: str
    systems: dict[str, System]
    datasets: dict[str, DataSet]
    protocol: Protocol = Field(default_factory=Protocol)
    every: int = Field(default=100, ge=1, description="Steps between two points")
    until: int = Field(default=5000, ge=1, description="Last step")

    @model_validator(mode="after")
    def _complete(self) -> "Course":
        for name, data in self.datasets.items():
            if data.lam is None:
                raise InputError(f"datasets.{name}: a course needs `lam`")
        for system in self.systems.values():
            # Of the first rows alone, `n_pairs` says how many pairs all of them make.
            system.points({"lam": [1.0], system.steps or "n_pairs": [self.every]})
        return self


Experiment = Annotated[Table | Course, Field(discriminator="kind")]


class Quick(Strict):
    """What is left of it with ``--quick``."""

    datasets: list[str]
    repeats: int = Field(default=1, ge=1)
    grid: Grid = Field(default_factory=dict, description="Instead of every table's")
    until: int = Field(default=500, ge=1, description="Last step of every course")


class Paper(Strict):
    """A paper's experiments."""

    paper: str = Field(pattern=r"^[A-Za-z0-9._-]+$", description="Names the folder of the results")
    title: str = Field(description="Heading of the page: the paper")
    departures: list[str] = Field(default=[], description="What is done otherwise than in the paper, for the page")
    experiments: dict[str, Experiment]
    quick: Quick
    cluster: ClusterConfig = Field(default_factory=NoCluster)
    output: str = Field(default="runs", min_length=1, description="Folder or URL below which the results are kept")

    def quickened(self) -> "Paper":
        """Return the small version of it."""
        left: dict[str, Experiment] = {}
        for name, experiment in self.experiments.items():
            datasets = {k: v for k, v in experiment.datasets.items() if k in self.quick.datasets}
            less: dict[str, Any] = {
                "datasets": datasets,
                "protocol": experiment.protocol.model_copy(update={"repeats": self.quick.repeats}),
            }
            if isinstance(experiment, Table):
                less["grid"] = experiment.grid | self.quick.grid
            else:
                less["until"] = min(experiment.until, self.quick.until)
            if datasets:
                left[name] = experiment.model_copy(update=less)
        return self.model_copy(update={"paper": f"{self.paper}-quick", "experiments": left})


def load_paper(paper: str, *, quick: bool = False, cluster: str | None = None, output: str | None = None) -> Paper:
    """Read a paper's configuration.

    Parameters
    ----------
    paper : str
        The name of a folder in ``configs/reproduce``, or the path of a YAML file.
    quick : bool
        A small part of it, as the file says.
    cluster, output : str, optional
        Replace the file's: the name of a file in ``configs/cluster`` or a path; a folder or a URL.

    Raises
    ------
    InputError
        If something in it is wrong; the message names the file and the key.
    """
    path = _find(paper)
    raw = read_mapping(path)
    if output is not None:
        raw["output"] = output
    if cluster is not None:
        raw["cluster"] = cluster
    if isinstance(raw.get("cluster"), str):
        raw["cluster"] = read_mapping(find_config(raw["cluster"], "cluster"))
    experiments = raw.get("experiments")
    for experiment in experiments.values() if isinstance(experiments, dict) else ():
        if isinstance(experiment, dict) and isinstance(experiment.get("targets"), str):
            experiment["targets"] = _read_targets(path.parent / experiment["targets"])
    try:
        config = Paper.model_validate(raw)
    except ValidationError as e:
        raise InputError(explain(e, Paper, str(path))) from None
    return config.quickened() if quick else config


def _find(paper: str) -> Path:
    if Path(paper).is_file():
        return Path(paper)
    folder = configs_folder("reproduce")
    names = sorted(p.parent.name for p in folder.glob(f"*/{FILE}"))
    if paper not in names:
        raise unknown("paper", paper, names)
    return folder / paper / FILE


def _read_targets(path: Path) -> list[dict[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"cannot read {path}: {e}") from None
    return [{k: v for k, v in row.items() if v != ""} for row in csv.DictReader(io.StringIO(text))]
