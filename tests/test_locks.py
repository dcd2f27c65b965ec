"""The lock files install with the oldest pip that comes with a supported Python, whatever is published after them."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ["requirements.lock", "docs/requirements.lock", "infra/docker/requirements.lock", "infra/docker/build.lock"]


def locked(file: str) -> dict[str, set[str]]:
    """Return the extras that a lock asks for, by package."""
    lines = re.findall(r"^([A-Za-z0-9._-]+)(?:\[([^]]*)\])?==", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    return {canonicalize_name(name): set(re.findall(r"[\w-]+", extras)) for name, extras in lines}


def asked(extras: dict[str, set[str]]) -> Iterator[Requirement]:
    """Yield what the locked packages that are installed ask for, here and with these extras of their own."""
    for name, of_name in extras.items():
        try:
            wanted = [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:  # for another system, or for the documentation alone
            continue
        for need in wanted:
            if any(need.marker is None or need.marker.evaluate({"extra": extra}) for extra in {"", *of_name}):
                yield need


def test_the_image_holds_what_every_feature_map_needs() -> None:
    needed = {
        Requirement(line).name for line in requires("aucdist") or () if 'extra == "trees"' in line.replace("'", '"')
    }
    assert needed == {"lightgbm"}
    assert needed <= locked("infra/docker/requirements.lock").keys()


@pytest.mark.parametrize("file", LOCKS)
def test_extras_are_in_the_lock(file: str) -> None:
    """`name[extra]` is looked up on its own by pip 23, which then takes the newest release and refuses it as not locked."""
    extras = locked(file)
    assert extras
    missing = {str(need) for need in asked(extras) if need.extras - extras.get(canonicalize_name(need.name), set())}
    assert missing == set()
