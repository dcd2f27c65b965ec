"""The configuration of a reproduction: the experiments of a paper, and the cluster that runs them."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from aucdist.errors import InputError, unknown
from flows.config.base import Cli, Strict
from flows.config.cluster import ClusterConfig, NoCluster
from flows.config.loading import config_of, configs_folder, explain, read_mapping
from flows.reproduce.curves import Descent, LearningCurves
from flows.reproduce.gev import Links, Optimisers, Shapes
from flows.reproduce.gmean import GMeans
from flows.reproduce.kind import Kind
from flows.reproduce.probabilities import Probabilities
from flows.reproduce.table import Table

FILE = "paper.yaml"

KINDS: dict[str, type[Kind]] = {
    "table": Table,
    "learning-curves": LearningCurves,
    "g-mean": GMeans,
    "descent": Descent,
    "links": Links,
    "shapes": Shapes,
    "probabilities": Probabilities,
    "optimisers": Optimisers,
}
"""The kinds of experiment; `kind` describes how to add one."""

if TYPE_CHECKING:
    Experiment = Kind
else:
    Experiment = Annotated[Union[tuple(KINDS.values())], Field(discriminator="kind")]  # noqa: UP007


class QuickChanges(BaseModel):
    """The keys of an experiment that ``--quick`` changes."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)  # the experiment validates the other keys

    datasets: list[str] | None = None
    """The data sets to use; all by default"""


class Paper(Strict):
    """The experiments of a paper."""

    paper: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    """Names the folder of the results"""
    title: str
    """Authors, year and title of the paper, the heading of the page"""
    departures: list[str] = Field(default=[])
    """How the experiments differ from the paper's, for the page"""
    experiments: dict[str, Experiment]
    quick: dict[str, QuickChanges]
    """The experiments of `--quick`, and the keys that it changes"""
    cluster: ClusterConfig = Field(default_factory=NoCluster)
    output: str = Field(default="runs", min_length=1)
    """Folder or URL of the results"""

    @model_validator(mode="after")
    def _check_quick(self) -> "Paper":
        self.quick_version()
        return self

    def quick_version(self) -> "Paper":
        """Return the paper with the experiments of ``--quick`` alone."""
        experiments = {name: self._quick_experiment(name, changes) for name, changes in self.quick.items()}
        return self.model_copy(update={"paper": f"{self.paper}-quick", "experiments": experiments, "quick": {}})

    def _quick_experiment(self, name: str, changes: QuickChanges) -> Kind:
        if name not in self.experiments:
            raise unknown("experiment in `quick`", name, self.experiments)
        full = self.experiments[name]
        for key in changes.datasets or ():
            if key not in full.datasets:
                raise unknown(f"data set in quick.{name}", key, full.datasets)
        try:
            quick = type(full).model_validate(
                _deep_merge(full.model_dump(exclude_unset=True), changes.model_extra or {})
            )
        except ValidationError as e:
            raise InputError(explain(e, type(full), f"quick.{name}")) from None
        if changes.datasets is None:
            return quick
        # After validation, because there may be printed figures of the other data sets.
        return quick.model_copy(update={"datasets": {key: quick.datasets[key] for key in changes.datasets}})


def _deep_merge(mapping: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping with some values replaced, at any depth."""
    nested = {
        key: _deep_merge(mapping[key], value)
        for key, value in changes.items()
        if isinstance(value, dict) and isinstance(mapping.get(key), dict)
    }
    return mapping | changes | nested


class ReproduceOptions(Strict):
    """The experiments of a paper."""

    paper: Annotated[str, Cli(place=1)]
    """A paper of configs/reproduce, such as 000, or a YAML file"""
    quick: Annotated[bool, Cli()] = False
    """Run only the small part that the file defines"""
    cluster: Annotated[str | None, Cli(metavar="NAME")] = None
    """A file in configs/cluster, or a path, in place of the file's own"""
    output: Annotated[str | None, Cli(metavar="URL")] = None
    """Folder or URL of the results; by default runs"""

    def resolved(self) -> Paper:
        """Return the configuration of the paper."""
        return load_paper(self.paper, quick=self.quick, cluster=self.cluster, output=self.output)


def load_paper(paper: str, *, quick: bool = False, cluster: str | None = None, output: str | None = None) -> Paper:
    """Read a paper's configuration.

    `paper`: the name of a folder in ``configs/reproduce``, or the path of a YAML file.
    `quick`: use the small part that the file defines.
    `cluster` and `output`: replace those of the file: the name of a file in ``configs/cluster`` or a path; a folder or
        a URL.
    Raises InputError if the configuration is wrong; the message names the file and the key.
    """
    path = Path(paper)
    if not path.is_file():
        folder = configs_folder("reproduce")
        names = sorted(p.parent.name for p in folder.glob(f"*/{FILE}"))
        if paper not in names:
            raise unknown("paper", paper, names)
        path = folder / paper / FILE
    raw = read_mapping(path)
    experiments = raw.get("experiments")
    for experiment in experiments.values() if isinstance(experiments, dict) else ():
        if isinstance(experiment, dict) and isinstance(experiment.get("targets"), str):
            experiment["targets"] = _read_targets(path.parent / experiment["targets"])
    settings = [] if cluster is None else [f"cluster={cluster}"]
    config = config_of(Paper, raw, str(path), path.parent, settings, output)
    return config.quick_version() if quick else config


def _read_targets(path: Path) -> list[dict[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"cannot read {path}: {e}") from None
    return [{k: v for k, v in row.items() if v != ""} for row in csv.DictReader(io.StringIO(text))]
