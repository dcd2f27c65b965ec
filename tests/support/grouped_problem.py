"""Small problems of pairs within groups, and of grades."""

import numpy as np
from support.grouped_pairs import pairs_of

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks


class Problem:
    """A small problem: some have weights, ties, groups of one class, rows of weight 0, several blocks, grades."""

    def __init__(self, seed):
        r = np.random.default_rng(seed)
        n, d = int(r.integers(6, 26)), int(r.integers(1, 5))
        self.X = np.round(r.normal(size=(n, d)) * 10.0 ** r.integers(-1, 2), int(r.integers(0, 3)))
        self.group = r.integers(0, r.integers(1, 7), n) * 5 - 7
        self.grade = r.choice([0.0, 1.0, 2.0, 5.0], n) if seed % 2 else None
        self.y = np.where(r.random(n) < 0.4, 1, -1) if self.grade is None else np.where(self.grade > 0, 1, -1)
        self.weighted = seed % 3 == 0
        self.weight = r.choice([0.0, 0.5, 1.0, 3.0], n) if self.weighted else np.ones(n)
        self.lam = float(10.0 ** r.integers(-3, 1))
        self.n_blocks = int(r.choice([1, 2, 5]))
        self.options = {"group_weight": r.choice(["pairs", "groups"]), "grade_weight": r.choice(["difference", "one"])}
        self.pairs = None
        values = self.y if self.grade is None else self.grade
        options = self.options if self.grade is not None else self.options | {"grade_weight": "one"}
        if len(pairs_of(values, self.group, self.weight)[0]):
            self.pairs = pairs_of(values, self.group, self.weight, **options)

    def blocks(self, n_blocks=None):
        n_blocks = n_blocks or self.n_blocks
        weight = self.weight if self.weighted else None
        block = Block.of(self.X, self.y, weight=weight, group=self.group, grade=self.grade)
        ends = [len(self.y) * k // n_blocks for k in range(n_blocks + 1)]
        return LocalBlocks([block.between(*ends[k : k + 2], index=k) for k in range(n_blocks)])


def some_problems(seeds):
    problems = [Problem(seed) for seed in seeds]
    return [problem for problem in problems if problem.pairs is not None]
