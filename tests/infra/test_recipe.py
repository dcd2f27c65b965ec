"""The recipe for conda and the citation say what the sources say."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import aucdist

ROOT = Path(__file__).resolve().parents[2]
CONDA_NAMES = {"matplotlib": "matplotlib-base", "prometheus-client": "prometheus_client"}


@pytest.fixture
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def in_recipe(output: int) -> dict[str, str]:
    recipe = yaml.safe_load((ROOT / "infra" / "conda" / "recipe.yaml").read_text("utf-8"))
    lines = recipe["outputs"][output]["requirements"]["run"]
    return dict(line.split(" ", 1) for line in lines if not line.startswith("$"))


def in_project(lines: list[str]) -> dict[str, str]:
    found = [Requirement(line) for line in lines if not line.startswith("aucdist[")]
    return {CONDA_NAMES.get(r.name, r.name): str(r.specifier) for r in found}


def test_recipe_asks_for_what_the_project_asks_for(project: dict[str, Any]) -> None:
    assert in_recipe(0) == in_project(project["dependencies"]) | {"python": project["requires-python"]}
    extras = project["optional-dependencies"]
    assert in_recipe(1) == in_project(extras["cli"]) | in_project(extras["report"])


@pytest.mark.parametrize("file", ["CITATION.cff", "infra/conda/recipe.yaml"])
def test_version_is_that_of_the_sources(file: str) -> None:
    assert re.findall(r"^ *version: (.+)$", (ROOT / file).read_text("utf-8"), re.MULTILINE) == [aucdist.__version__]


def test_tags_of_the_image_are_the_version_of_the_sources() -> None:
    files = [path for folder in ("configs", "infra", "docs/pages") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text("utf-8") for path in files if path.suffix in ("", ".md", ".yaml") and path.is_file()]
    tags = [tag for text in texts for tag in re.findall(r"\baucdist:(\d+\.\d+\.\S+)", text)]
    assert len(tags) >= 8
    assert set(tags) == {aucdist.__version__.partition(".dev")[0]}


def test_command_is_that_of_the_project(project: dict[str, Any]) -> None:
    recipe = yaml.safe_load((ROOT / "infra" / "conda" / "recipe.yaml").read_text("utf-8"))
    files, cli = (output["build"] for output in recipe["outputs"])
    (entry,) = files["python"]["entry_points"]
    assert dict([entry.split(" = ")]) == project["scripts"]
    # Every output inherits what stands above them, and only the first has an environment with Python to install in.
    assert "script" in files
    assert "build" not in recipe
    assert cli == {"noarch": "generic"}
