"""Configurations of searches, for tests."""

from collections.abc import Sequence

from flows.config.loading import load_config
from flows.cv.config import CvConfig


def load_cv(config: str, settings: Sequence[str] = (), output: str | None = None) -> CvConfig:
    """Read the configuration of a search, a path or a name in ``configs/cv``."""
    return load_config(CvConfig, "cv", config, settings, output)
