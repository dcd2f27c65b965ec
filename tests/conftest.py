"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples each time, so that what passed here passes everywhere; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("fixed", derandomize=True)
settings.register_profile("explore", max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets; a test that needs it is skipped where there is none."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("AUCDIST_DATA", default))
    if not (folder / "MANIFEST.csv").is_file():
        pytest.skip(f"no real data sets at {folder}: set AUCDIST_DATA")
    return folder
