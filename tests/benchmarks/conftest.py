"""The figures of the benchmarks are what their tests look at."""

import pytest


@pytest.fixture
def figures() -> None:
    """Let figures be rendered, in place of the fixture for the other folders."""
