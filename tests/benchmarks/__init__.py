"""What compares us with others, and a model of scale: ``PYTHONPATH=tests python -m benchmarks SUITE``.

A data set, a system and a suite are small classes: `peers.data_sets`, `peers.system` and `flows.bench.suites.Suite`.
"""

from flows.bench.suites import SUITES as OUR_SUITES

SUITES = OUR_SUITES | {
    "cv": "benchmarks.cv",
    "coverage": "benchmarks.cv",
    "sampling": "benchmarks.sampling",
    "groups": "benchmarks.groups",
    "hinge": "benchmarks.hinge",
    "link": "benchmarks.link",
    "peers": "benchmarks.peers.suite",
    "top": "benchmarks.peers.top",
    "curves": "benchmarks.peers.curves",
    "passes": "benchmarks.peers.passes",
    "limits": "benchmarks.limits",
    "monotone": "benchmarks.monotone",
    "shapes": "benchmarks.shapes",
    "scale": "benchmarks.scale",
    "trees": "benchmarks.trees",
}
"""The module of each suite; those of `aucdist bench` are among them."""
