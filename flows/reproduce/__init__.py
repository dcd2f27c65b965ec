"""Reproduction of papers: runs their experiments and compares the results with the printed figures (`aucdist reproduce`).

A paper is a file ``configs/reproduce/<paper>/paper.yaml`` that lists experiments. Each experiment is of a kind, and each kind is
one module of this folder; `kind` describes their protocol and how to add one. `run` runs the tasks of all experiments, stores
each result, and writes the CSV files and the page.
"""
