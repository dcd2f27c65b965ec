"""The suite `limits`: the bandwidth of the kernels against that of a copy, and the passes of certified fits."""

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from aucdist.data.block import Block, row_squares
from aucdist.data.formats.base import FilePart
from aucdist.data.formats.registry import SvmlightFormat
from aucdist.data.shards.simulate import simulate
from aucdist.data.sources import Source, parse_source
from aucdist.engine.blocks import LocalBlocks
from aucdist.kernels.codes import BinRows
from aucdist.kernels.rows import CsrRows, Rows, accumulate, project
from aucdist.papers.scd.kernels import (
    DUAL,
    LABEL,
    N_COLUMNS,
    SQUARE,
    UPPER,
    Active,
    DualSweeps,
    dual_sweeps,
)
from aucdist.papers.tpauc.kernels import SquareTerms, square_epoch
from aucdist.report import plots
from aucdist.report.svg import MUTED
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.cutting_planes import AllPairs
from aucdist.solvers.pairs.kernels import cut
from aucdist.solvers.pairs.loss import AnchorGroups, one_run
from benchmarks.common import Row, fastest
from flows.reproduce.page import LINE_STYLES

N_ROWS, N_FEATURES, N_WIDE, DENSITY = 581_012, 54, 62_061, 1.3e-3
"""The size of forest cover type; for sparse rows, the width and the density of news20."""

LAM = 1e-3
GAPS = (1e-2, 1e-3, 1e-4)
TEXT_ROWS = 20_000


def limits(slow_peers: bool) -> Iterator[Row]:
    """Measure each kernel's bytes per second against a copy of the same array; then the passes and seconds of fits to a gap."""
    block = simulate(N_ROWS, N_FEATURES, 0.18, seed=0)
    yield from measure_products("dense", block)
    yield from measure_pair_sweep(block)
    yield from measure_epochs("dense", block)
    yield from measure_parser(block.take(np.arange(min(TEXT_ROWS, block.n_samples))))
    yield from measure_fits(block)
    yield from measure_products("codes of 64 bins", coded(block))
    yield from measure_products("CSR", sparse_rows(N_ROWS // 10))


def coded(block: Block) -> Block:
    """Return rows as codes of bins, which take a byte a value."""
    from aucdist.maps import BinExpander

    fitted = BinExpander(bins=64).fit_blocks(LocalBlocks([block]))
    return fitted.encode(block)


def sparse_rows(n_rows: int) -> Block:
    """Return sparse random rows."""
    random = np.random.default_rng(0)
    X = sp.random_array((n_rows, N_WIDE), density=DENSITY, format="csr", rng=random)
    return Block.of(sp.csr_matrix(X), np.where(random.random(n_rows) < 0.05, 1, -1))


def measure_products(form: str, block: Block) -> Iterator[Row]:
    """Measure X w and X'c, each of which reads the rows once, with two operations a value."""
    n, rows, w = block.n_samples, block.rows, np.ones(block.n_features)
    out, back, every = np.empty(n), np.zeros(block.n_features), np.arange(n)
    copied, operations = _copy_speed_of(rows), 2.0 * _values_of(rows).size
    seconds = fastest(lambda: project(rows, w, out))
    row = _row(f"project, {form}", seconds, _row_bytes(rows) + out.nbytes, operations, copied)
    yield row | {"ns a row": 1e9 * seconds / n}
    seconds = fastest(lambda: accumulate(rows, every, out, back))
    row = _row(f"accumulate, {form}", seconds, _row_bytes(rows) + out.nbytes + every.nbytes, operations, copied)
    yield row | {"ns a row": 1e9 * seconds / n}


def measure_pair_sweep(block: Block) -> Iterator[Row]:
    """Measure the sweep over all pairs, which reads score and weight of a row and writes a coefficient: five operations a row."""
    scores = np.asarray(block.X @ np.random.default_rng(0).normal(size=block.n_features) / block.n_features)
    anchors, _ = AnchorGroups(None).sorted(scores[block.y > 0], np.ones(int((block.y > 0).sum())))
    others = np.ascontiguousarray(scores[block.y < 0])
    weights, coefs = np.ones(len(others)), np.empty(len(others))
    histogram, shift = np.zeros(anchors.n_gaps), np.zeros(1)
    args = ((others, weights, one_run(len(others))), shift, anchors.search, anchors.doubt, coefs, histogram)
    size = others.nbytes + weights.nbytes + coefs.nbytes
    yield _row("pair sweep", fastest(lambda: cut(*args)), size, 5.0 * len(others), _copy_speed(others))


def measure_epochs(form: str, block: Block) -> Iterator[Row]:
    """Measure an epoch of dual descent on the hinge and one on the pairwise square, in random order: four operations a value."""
    n, d, rows = block.n_samples, block.n_features, block.rows
    random, copied, operations = np.random.default_rng(0), _copy_speed_of(rows), 4.0 * rows.values.size
    order = random.permutation(n)
    table = np.empty((n, N_COLUMNS))
    table[:, SQUARE] = row_squares(rows)
    table[:, UPPER], table[:, LABEL] = 1.0 / (LAM * n), block.y
    positions, w = order.astype(np.int32), np.zeros(d + 1)

    def dual_epoch() -> None:
        table[:, DUAL], w[:] = 0.0, 0.0
        dual_sweeps(rows, table, positions, Active(n), DualSweeps(0, n, True, 0.0, 1.0), w)

    yield _row(f"hinge dual epoch, {form}", fastest(dual_epoch), _row_bytes(rows) + table.nbytes, operations, copied)
    basis, out = np.zeros((3, d)), np.empty(d)
    factors, products, v = np.ones(n), np.zeros((n, 3)), np.zeros(d)
    args = (rows, order, block.y, SquareTerms(factors, products, basis, basis @ basis.T, 1e-6, LAM, n), v, out)
    size = _row_bytes(rows) + order.nbytes + block.y.nbytes + factors.nbytes + products.nbytes
    yield _row(f"square epoch, {form}", fastest(lambda: square_epoch(*args)), size, operations, copied)


def measure_parser(block: Block) -> Iterator[Row]:
    """Measure the parsing of svmlight text into CSR against a copy of the text."""
    from sklearn.datasets import dump_svmlight_file

    stream = io.BytesIO()
    dump_svmlight_file(block.X, block.y, stream, zero_based=False)
    text, source = stream.getvalue(), _text_source()
    copied = _copy_speed(np.frombuffer(text, dtype=np.uint8))
    yield _row(
        "svmlight parse",
        fastest(lambda: SvmlightFormat().parse(text, source, FilePart("limits"), None)),
        len(text),
        None,
        copied,
    )


def _text_source() -> Source:
    return parse_source({"source": "limits.svmlight", "format": "svmlight"}, "bench")


def measure_fits(block: Block) -> Iterator[Row]:
    """Measure passes and seconds of certified fits; a pass reads the rows twice, for X w and for X'c."""
    copied = _copy_speed_of(block.rows)
    for gap in GAPS:
        found = solve(AllPairs().rounds(LocalBlocks([block]), LAM), tol=gap, max_passes=500)
        seconds, size = float(found.history["seconds"].iloc[-1]), 2.0 * found.passes * _row_bytes(block.rows)
        row = _row(f"all-pairs to a gap of {gap:g}", seconds, size, None, copied)
        yield row | {"passes": found.passes, "gap": found.certificate.relative_gap}


def _row_bytes(rows: Rows) -> int:
    if isinstance(rows, CsrRows):
        return int(rows.values.nbytes + rows.indices.nbytes + rows.offsets.nbytes)
    return int(_values_of(rows).nbytes)


def _values_of(rows: Rows) -> np.ndarray:
    """Return what is read of each row: its values, or its codes."""
    return rows.codes if isinstance(rows, BinRows) else rows.values


def _copy_speed_of(rows: Rows) -> float:
    return _copy_speed(_values_of(rows))


def _copy_speed(values: np.ndarray) -> float:
    """Return the bytes per second that a copy reads and writes."""
    target = np.empty_like(values)
    return 2.0 * values.nbytes / fastest(lambda: np.copyto(target, values))


def _row(kernel: str, seconds: float, size: float, operations: float | None, copied: float) -> Row:
    rate = size / seconds
    row: Row = {
        "kernel": kernel, "seconds": seconds, "GB": size / 1e9, "GB/s": rate / 1e9, "copy GB/s": copied / 1e9,
        "share of the copy": rate / copied,
    }  # fmt: skip
    if operations is not None:
        row |= {"operations per byte": operations / size, "Gflop/s": operations / seconds / 1e9}
    return row


def figure(results: pd.DataFrame) -> str:
    """Return the roofline as an SVG file: operations per second against operations per byte, with the bound of the copy."""
    return plots.standalone_svg("limits", _roofline(results[results["operations per byte"].notna()]))


def _roofline(rows: pd.DataFrame) -> Callable[[Any], None]:
    def plot(axes: Any) -> None:
        intensity = rows["operations per byte"].to_numpy(dtype=float)
        ends = np.array([intensity.min() / 2, intensity.max() * 2])
        # The speed of the largest array, because copies of smaller ones may stay in a cache.
        roof = float(rows.sort_values("GB")["copy GB/s"].iloc[-1])
        axes.plot(ends, roof * ends, "-", color=MUTED, label=f"a copy's {roof:.1f} GB/s")
        marks = "osD^v"
        for k, (_, row) in enumerate(rows.iterrows()):
            colour, mark = LINE_STYLES[k % 2][0], marks[k % len(marks)]
            axes.plot(row["operations per byte"], row["Gflop/s"], mark, color=colour, label=row["kernel"])
        axes.set(xlabel="Operations per byte, log scale", ylabel="Gflop/s, log scale", xscale="log", yscale="log")

    return plot
