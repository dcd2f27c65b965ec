"""Small sources for the tests of several formats."""

from collections.abc import Callable
from pathlib import Path

import pytest

from aucdist.data.dataset import Dataset
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source, parse_source


@pytest.fixture
def source(tmp_path: Path) -> Callable[..., Source]:
    """Return a function that writes a file and returns it as a source, of svmlight by default."""

    def source(text, name="f", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Source(source=str(path), **{"format": "svmlight"} | options)

    return source


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Dataset]:
    """Return a function that writes a file and reads it, as CSV with the label `y` by default."""

    def load(data, name="f.csv", schema=None, **keys):
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        entry = {"source": str(tmp_path / name), "format": "csv", "label": "y"} | keys
        return read(parse_source(entry, "a test"), schema=schema)

    return load
