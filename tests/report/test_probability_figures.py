import re

import numpy as np
import pandas as pd
import pytest

from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.report.plots import inline_svg, reliability_diagram, shape_trace


def counts(share, weighted=False):
    r = np.random.default_rng(0)
    p = np.clip(share * r.gamma(1.0, size=4000), 0, 1)
    y = np.where(r.random(4000) < p, 1, -1)
    return ScoreCounts.from_scores(y, p, np.full(4000, 0.5) if weighted else None)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("share", "log"), [(0.3, False), (0.01, True)])
def test_reliability_diagram(share, log, weighted):
    svg = inline_svg(
        "reliability",
        "Reliability",
        "What was predicted and what came true.",
        lambda axes: reliability_diagram(axes, counts(share, weighted)),
    )
    assert ("log scale" in svg) == log
    assert ("95 % interval" in svg) == (not weighted)
    assert "Share of positives" in svg
    assert "nan" not in svg.lower().replace("#", "")


def test_a_rare_class_without_positives_in_some_bins_is_drawn():
    p = np.linspace(1e-6, 1e-3, 1000)
    y = np.where(np.arange(1000) > 997, 1, -1)
    found = ScoreCounts.from_scores(y, p)
    assert "<svg" in inline_svg("r", "t", "d", lambda axes: reliability_diagram(axes, found))


def test_scores_are_refused():
    with pytest.raises(InputError, match="predict_proba"):
        reliability_diagram(None, ScoreCounts.from_scores(np.array([1, -1]), np.array([3.0, -2.0])))


@pytest.mark.parametrize("level", ["log_posterior", "log_likelihood"])
def test_shape_trace(level):
    trace = pd.DataFrame({"round": [1, 2, 3], "xi": [0.1, 0.2, 0.25], level: [-30.0, -20.0, -19.0]})
    svg = inline_svg("shape", "Shape", "How xi was found.", lambda axes: shape_trace(axes, trace))
    assert "Shape xi" in svg
    assert level.replace("_", " ").capitalize() in svg
    assert len(re.findall("<path", svg)) > 5
