"""Small sources for the tests of several formats."""

from collections.abc import Callable
from pathlib import Path

import pytest

from aucdist.data.sources import Source


@pytest.fixture
def source(tmp_path: Path) -> Callable[..., Source]:
    """Return a function that writes a file and returns it as a source, of svmlight by default."""

    def source(text, name="f", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Source(source=str(path), **{"format": "svmlight"} | options)

    return source
