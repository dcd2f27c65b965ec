"""What measures us, alone and beside others, and a model of scale: ``PYTHONPATH=tests python -m benchmarks SUITE``.

A data set, a system and a suite are small classes: `peers.data_sets`, `peers.system` and `suites.Suite`.
"""
