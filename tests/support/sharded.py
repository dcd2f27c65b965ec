"""Sharding from start to end in one call, as the command does it stage by stage; and manifests that somebody changed."""

import hashlib
import json
from pathlib import Path
from typing import Any

from aucdist.data.shards import sharding
from aucdist.data.shards.manifest import CURRENT, Manifest
from aucdist.data.shards.reading import ParallelMap


def shard_data(asked: sharding.Request, *, each: ParallelMap = map, n_parts: int | None = None) -> Manifest:
    """Shard a data set; parameters and errors as `aucdist.data.shards.sharding.survey`."""
    if known := sharding.finished(asked, each):
        return known
    job = sharding.survey(asked, each=each, n_parts=n_parts)
    starts = sharding.route_all(job, each)
    return sharding.finish(job, sharding.gather_all(job, starts, each))


def current_manifest(folder: Path) -> Any:
    """Return the content of the current manifest of a data set."""
    return json.loads((folder / (folder / CURRENT).read_text().strip()).read_text())


def commit_manifest(folder: Path, content: Any) -> Path:
    """Make bytes or content of JSON the current manifest, under the name that the checksum asks for, and return its path."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path = folder / f"manifest-{hashlib.sha256(data).hexdigest()[:16]}.json"
    path.write_bytes(data)
    (folder / CURRENT).write_text(path.name)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Return what is in each file of a folder and of those below it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
