"""Reproduction of papers (`aucdist reproduce`): run their experiments, and compare the results with the printed figures.

A paper is a file ``configs/reproduce/<paper>/paper.yaml`` that lists experiments. Each experiment is of a kind, and each kind
is one module of this folder. The module `kind` describes what kinds have in common, and how to add one. The module `run` runs
the tasks of all experiments, stores each result, and writes the CSV files and the page.
"""
