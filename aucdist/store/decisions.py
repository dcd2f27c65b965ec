"""The tests that decided whether a model was promoted, kept beside the versions: also of those that were not."""

import hashlib
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json

from aucdist.data.checked import parse_any
from aucdist.data.storage import files
from aucdist.store.history import Store

DECISIONS = "decisions"


def keep_decision(store: Store, decision: dict[str, Any], picture: str) -> str:
    """Write a decision and its picture, under a name of their own, and return the URL of the picture.

    `decision`: in types of JSON.
    Raises InputError if they cannot be written.
    """
    now = datetime.now(UTC)
    data = to_json(decision | {"time": f"{now:%Y-%m-%dT%H:%M:%SZ}"}, indent=2) + b"\n"
    name = f"{now:%Y%m%d-%H%M%S}-{now.microsecond:06d}-{hashlib.sha256(data).hexdigest()[:8]}"
    url = f"{store.url}/{DECISIONS}/{name}"
    files.write_bytes(f"{url}.svg", picture.encode())
    files.write_bytes(f"{url}.json", data)
    return f"{url}.svg"


def read_decisions(store: Store) -> list[dict[str, Any]]:
    """Return all decisions, the first one first.

    Raises InputError if one is damaged.
    """
    names = [name for name in files.names_in(f"{store.url}/{DECISIONS}") if name.endswith(".json")]
    found = []
    for name in names:
        url = f"{store.url}/{DECISIONS}/{name}"
        content = parse_any(files.read_bytes(url), files.shown(url))
        if isinstance(content, dict):
            found.append(content)
    return found
