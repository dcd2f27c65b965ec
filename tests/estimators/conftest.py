"""Rows that several estimators are tested on."""

import numpy as np
import pytest


@pytest.fixture
def data():
    """Rows with few positives, and their labels."""
    r = np.random.default_rng(0)
    y = np.where(r.random(400) < 0.15, 1, -1)
    return r.normal(size=(400, 5)) + 0.8 * (y[:, None] > 0), y
