"""The wheel and the sdist hold what they must, and the wheel works in an environment that knows nothing of the checkout.

The environment's packages are those of the one that runs the tests, by a path file: nothing is downloaded. Path files within that
folder are not followed, so that the checkout itself, which is installed there for development, is not found.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import aucdist

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment | {"PREFECT_API_URL": "", "AUCDIST_DATA": str(cwd)},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def built(source: Path, target: Path, *kinds: str) -> list[Path]:
    """Build distributions of the kinds ``sdist`` and ``wheel``."""
    run(sys.executable, "-m", "hatchling", "build", "-d", target, *(f"-t{kind}" for kind in kinds), cwd=source)
    return sorted(target.iterdir())  # the wheel first, by name


@pytest.fixture(scope="module")
def wheel_and_sdist(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    wheel, sdist = built(ROOT, tmp_path_factory.mktemp("dist"), "wheel", "sdist")
    return wheel, sdist


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheel_and_sdist: tuple[Path, Path]) -> Path:
    """The folder of a clean environment's commands, with the wheel installed."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel_and_sdist[0], cwd=place)
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=place).strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return place / "bin"


def test_wheel_holds_types_configurations_and_templates(wheel_and_sdist: tuple[Path, Path]) -> None:
    names = set(zipfile.ZipFile(wheel_and_sdist[0]).namelist())
    assert "aucdist/py.typed" in names
    assert "aucdist/configs/prefect/prefect.yaml" in names
    configurations = [file for file in (ROOT / "configs").rglob("*") if file.suffix in (".yaml", ".csv")]
    assert {f"aucdist/{file.relative_to(ROOT).as_posix()}" for file in configurations} <= names
    sources = [file for top in ("aucdist", "flows") for file in (ROOT / top).rglob("*") if file.is_file()]
    expected = {file.relative_to(ROOT).as_posix() for file in sources if "__pycache__" not in file.parts}
    assert expected <= names
    assert not any(name.startswith(("tests/", "docs/", "runs/")) for name in names)


def test_sdist_gives_the_same_wheel(wheel_and_sdist: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = wheel_and_sdist
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (again,) = built(tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path / "dist", "wheel")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_version_is_that_of_the_wheel(environment: Path, wheel_and_sdist: tuple[Path, Path], tmp_path: Path) -> None:
    version = wheel_and_sdist[0].name.split("-")[1]
    assert run(environment / "aucdist", "--version", cwd=tmp_path) == f"aucdist {version}\n"
    code = "import aucdist, flows; print(aucdist.__version__, aucdist.__file__, flows.__file__, sep='\\n')"
    printed, *files = run(environment / "python", "-c", code, cwd=tmp_path).split()
    assert printed == version
    assert all(Path(file).is_relative_to(environment.parent) for file in files)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone without tags, with the project's own pyproject.toml, committed."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout: there is nothing to clone")
    place = tmp_path / "clone"
    run("git", "clone", "--quiet", "--no-tags", ROOT, place, cwd=tmp_path)
    shutil.copy(ROOT / "pyproject.toml", place)
    author = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    run("git", *author, "commit", "--quiet", "--all", "--allow-empty", "--message=test", cwd=place)
    return place


def version_built(source: Path) -> str:
    (wheel,) = built(source, source / "dist", "wheel")
    return wheel.name.split("-")[1]


def test_version_is_that_of_the_sources_with_and_without_git(clone: Path) -> None:
    (written,) = re.findall(
        r'^__version__ = "(.+)"$', (clone / "aucdist" / "__init__.py").read_text("utf-8"), re.MULTILINE
    )
    assert version_built(clone) == written
    run("git", "tag", "v9.8.7", cwd=clone)
    shutil.rmtree(clone / "dist")
    assert version_built(clone) == written
    shutil.rmtree(clone / "dist")
    shutil.rmtree(clone / ".git")
    assert version_built(clone) == written


def test_installed_package_trains(environment: Path, tmp_path: Path) -> None:
    said = run(environment / "aucdist", "train", "digits", "--json", cwd=tmp_path)  # on two workers
    result = json.loads(said.splitlines()[-1])
    assert result["certificate"]["status"] == "converged"
    folder = tmp_path / result["run"]
    assert {"report.html", "metrics.json", "model"} <= {file.name for file in folder.iterdir()}
    scored = run(environment / "aucdist", "score", folder / "model", "digits", "scores", "--json", cwd=tmp_path)
    assert json.loads(scored.splitlines()[-1])["rows"] == 1797


# ---- the recipe for conda and the citation say what the sources say ---------------------------


CONDA_NAMES = {"prometheus-client": "prometheus_client"}


@pytest.fixture
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def in_recipe(output: int) -> dict[str, str]:
    recipe = yaml.safe_load((ROOT / "infra" / "conda" / "recipe.yaml").read_text("utf-8"))
    lines = recipe["outputs"][output]["requirements"]["run"]
    return dict(line.split(" ", 1) for line in lines if not line.startswith("$"))


def in_project(lines: list[str]) -> dict[str, str]:
    requirements = [Requirement(line) for line in lines if not line.startswith("aucdist[")]
    return {CONDA_NAMES.get(r.name, r.name): str(r.specifier) for r in requirements}


def test_recipe_asks_for_what_the_project_asks_for(project: dict[str, Any]) -> None:
    assert in_recipe(0) == in_project(project["dependencies"]) | {"python": project["requires-python"]}
    extras = project["optional-dependencies"]
    assert in_recipe(1) == in_project(extras["cli"])


@pytest.mark.parametrize("file", ["CITATION.cff", "infra/conda/recipe.yaml"])
def test_version_is_that_of_the_sources(file: str) -> None:
    assert re.findall(r"^ *version: (.+)$", (ROOT / file).read_text("utf-8"), re.MULTILINE) == [aucdist.__version__]


def test_tags_of_the_image_are_the_version_of_the_sources() -> None:
    files = [path for folder in ("configs", "infra", "docs/pages") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text("utf-8") for path in files if path.suffix in ("", ".md", ".yaml") and path.is_file()]
    tags = [tag for text in texts for tag in re.findall(r"\baucdist:(\d+\.\d+\.\S+)", text)]
    assert len(tags) >= 7
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
