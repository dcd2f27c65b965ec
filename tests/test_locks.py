"""The lock files install with the oldest pip that comes with a supported Python, and hold what is asked for and tested."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
OF_IMAGE = ["infra/docker/requirements.lock", "infra/docker/build.lock"]


def text_of(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def locked(file: str) -> dict[str, tuple[str, set[str]]]:
    """Return the version of each package of a lock, and the extras that it asks for."""
    lines = re.findall(r"^([A-Za-z0-9._-]+)(?:\[([^]]*)\])?==([^\s;]+)", text_of(file), re.MULTILINE)
    return {canonicalize_name(name): (version, set(re.findall(r"[\w-]+", extras))) for name, extras, version in lines}


def asked(file: str) -> Iterator[Requirement]:
    """Yield what the locked packages that are installed ask for, here and with these extras of their own."""
    for name, (_, of_name) in locked(file).items():
        try:
            needs = [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:  # for another system, or for the documentation alone
            continue
        for need in needs:
            if any(need.marker is None or need.marker.evaluate({"extra": extra}) for extra in {"", *of_name}):
                yield need


def test_the_image_holds_what_every_feature_map_needs() -> None:
    needed = {
        Requirement(line).name for line in requires("aucdist") or () if 'extra == "trees"' in line.replace("'", '"')
    }
    assert needed == {"lightgbm"}
    assert needed <= locked(OF_IMAGE[0]).keys()


@pytest.mark.parametrize("file", ["requirements.lock", "docs/requirements.lock", *OF_IMAGE])
def test_extras_are_in_the_lock(file: str) -> None:
    """`name[extra]` is looked up on its own by pip 23, which then takes the newest release and refuses it as not locked."""
    extras = {name: of_name for name, (_, of_name) in locked(file).items()}
    assert extras
    missing = {str(need) for need in asked(file) if need.extras - extras.get(canonicalize_name(need.name), set())}
    assert missing == set()


@pytest.mark.parametrize("file", OF_IMAGE)
def test_image_holds_the_versions_that_are_tested(file: str) -> None:
    tested, held = locked("requirements.lock"), locked(file)
    assert {name: version for name, (version, _) in held.items() if tested.get(name, (version,))[0] != version} == {}
    lines = text_of(file).splitlines()
    pinned = [i for i, line in enumerate(lines) if "==" in line]
    assert all("--hash=sha256:" in lines[i + 1] for i in pinned)


def test_the_lock_of_the_documentation_has_what_its_extra_asks_for() -> None:
    file = "docs/requirements.lock"
    extras = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]
    for requirement in map(Requirement, extras["docs"]):
        assert locked(file)[requirement.name][0] in requirement.specifier
    assert not re.search("index|://", text_of(file))
