"""A small fit, so that forks of a process that has imported this have the kernels of most fits: loading them takes a second."""

from aucdist.data.block import into_blocks
from aucdist.data.shards.sharding import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.solvers.base import solve

solve(AllPairs().rounds(LocalBlocks(into_blocks(simulate(60, 3, 0.3, seed=0), 2)), 1e-2), tol=1e-3, max_passes=20)
