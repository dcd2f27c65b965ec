"""What a reproduction is told: the experiments of a paper, and where they run."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from aucdist.errors import InputError, unknown
from flows.config.base import Strict
from flows.config.cluster import ClusterConfig, NoCluster
from flows.config.loading import configs_folder, explain, find_config, read_mapping
from flows.reproduce.descent import Descent
from flows.reproduce.gmean import GMeans
from flows.reproduce.kind import Kind
from flows.reproduce.learning_curves import LearningCurves
from flows.reproduce.links import Links
from flows.reproduce.optimisers import Optimisers
from flows.reproduce.probabilities import Probabilities
from flows.reproduce.shapes import Shapes
from flows.reproduce.table import Table

FILE = "paper.yaml"
KINDS: dict[str, type[Kind]] = {
    "table": Table,
    "course": LearningCurves,
    "g-mean": GMeans,
    "descent": Descent,
    "links": Links,
    "shapes": Shapes,
    "probabilities": Probabilities,
    "optimisers": Optimisers,
}

if TYPE_CHECKING:
    Experiment = Kind
else:
    Experiment = Annotated[Union[tuple(KINDS.values())], Field(discriminator="kind")]  # noqa: UP007


class Quick(BaseModel):
    """What an experiment is with ``--quick``: its own keys, where they are different."""

    model_config = ConfigDict(extra="allow")  # checked by the experiment

    datasets: list[str] | None = Field(default=None, description="Those that stay; without it all")


class Paper(Strict):
    """A paper's experiments."""

    paper: str = Field(pattern=r"^[A-Za-z0-9._-]+$", description="Names the folder of the results")
    title: str = Field(description="Heading of the page: the paper")
    departures: list[str] = Field(default=[], description="What is done otherwise than in the paper, for the page")
    experiments: dict[str, Experiment]
    quick: dict[str, Quick] = Field(description="The experiments that stay with `--quick`, and what is different then")
    cluster: ClusterConfig = Field(default_factory=NoCluster)
    output: str = Field(default="runs", min_length=1, description="Folder or URL below which the results are kept")

    @model_validator(mode="after")
    def _quick_is_sound(self) -> "Paper":
        self.quickened()
        return self

    def quickened(self) -> "Paper":
        """Return the small version of it."""
        left = {name: self._less(name, less) for name, less in self.quick.items()}
        return self.model_copy(update={"paper": f"{self.paper}-quick", "experiments": left, "quick": {}})

    def _less(self, name: str, less: Quick) -> Kind:
        if name not in self.experiments:
            raise unknown("experiment in `quick`", name, self.experiments)
        whole = self.experiments[name]
        for key in less.datasets or ():
            if key not in whole.datasets:
                raise unknown(f"data set in quick.{name}", key, whole.datasets)
        try:
            small = type(whole).model_validate(_merged(whole.model_dump(exclude_unset=True), less.model_extra or {}))
        except ValidationError as e:
            raise InputError(explain(e, type(whole), f"quick.{name}")) from None
        if less.datasets is None:
            return small
        # Taken out last: there may be printed figures of all of them.
        return small.model_copy(update={"datasets": {key: small.datasets[key] for key in less.datasets}})


def _merged(whole: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping with some values changed, at any depth."""
    both = {
        k: _merged(whole[k], v) for k, v in changes.items() if isinstance(v, dict) and isinstance(whole.get(k), dict)
    }
    return whole | changes | both


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
