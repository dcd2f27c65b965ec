"""Part of the suite `data`: the speed of our parsers and of their peers."""

import io
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from aucdist.data.formats.base import FilePart
from aucdist.data.formats.csv_and_keel import CsvFormat
from aucdist.data.formats.registry import SvmlightFormat
from aucdist.data.sources import find_source, parse_source
from aucdist.data.storage import files
from aucdist.data.storage.guard import unpacked
from benchmarks.common import Row, seconds_of

N_PARTS = 16


def parsers(slow_peers: bool) -> Iterator[Row]:
    """Compare svmlight with scikit-learn, CSV with pandas and pyarrow, and two threads with one on one file."""
    yield from svmlight()
    yield from csv()
    yield from in_parts()


def svmlight() -> Iterator[Row]:
    """Parse bytes in memory into CSR and labels; every number equals Python's `float` of its text."""
    from sklearn.datasets import load_svmlight_file

    for name, times in (("a9a", 50), ("news20", 1), ("usps-esl", 5)):
        source, data = find_source(name), text_of(name) * times
        yield compare_speeds(
            f"svmlight {name} x {times}", data, partial(SvmlightFormat(source).parse, data, FilePart(name)),
            {"scikit-learn": partial(of_stream, load_svmlight_file, data)},
        )  # fmt: skip


def csv() -> Iterator[Row]:
    """Parse bytes in memory into a float matrix and classes; the peers return separate columns and keep integers."""
    import pandas as pd
    import pyarrow.csv

    for name in ("covtype-ramp-test", "kddcup99"):
        source, data = find_source(name), text_of(name)
        header = 0 if source.header else None
        options = pyarrow.csv.ReadOptions(use_threads=False, autogenerate_column_names=not source.header)
        peers = {
            "pandas": partial(of_stream, partial(pd.read_csv, header=header), data),
            "pyarrow": partial(of_stream, partial(pyarrow.csv.read_csv, read_options=options), data),
        }
        yield compare_speeds(f"CSV {name}", data, partial(CsvFormat(source).parse, data, FilePart(name)), peers)


def in_parts() -> Iterator[Row]:
    """Parse the parts of one file with one and with two threads, since parsing releases the interpreter lock."""
    with tempfile.TemporaryDirectory(prefix="aucdist-bench-") as folder:
        path = Path(folder) / "a9a"
        path.write_bytes(text_of("a9a") * 50)
        source = parse_source({"source": str(path), "format": "svmlight"}, "bench")
        file_parts = source.format_of().split(N_PARTS)
        seconds = []
        for n_threads in (1, 2):
            with ThreadPoolExecutor(n_threads) as pool:
                seconds.append(seconds_of(lambda pool=pool: list(pool.map(source.format_of().read_part, file_parts))))  # type: ignore[misc]
        yield {
            "what": f"a9a x 50 in {len(file_parts)} parts", "one thread s": seconds[0], "two threads s": seconds[1],
            "gain": seconds[0] / seconds[1],
        }  # fmt: skip


def text_of(name: str) -> bytes:
    """Return the uncompressed content of the one file of a data set."""
    (url,) = files.files_of(find_source(name).source)
    return unpacked(files.read_bytes(url), url)


def of_stream(read: Callable[[io.BytesIO], Any], data: bytes) -> Any:
    """Call a reader with a new stream of the data."""
    return read(io.BytesIO(data))


def compare_speeds(what: str, data: bytes, ours: Callable[[], Any], peers: Mapping[str, Callable[[], Any]]) -> Row:
    """Return the speed of each parser in CPU seconds, in alternating runs, so that other work affects all of them."""

    def cpu_seconds(work: Callable[[], Any]) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    ours()
    callables = {"ours": ours, **peers}
    runs = [{name: cpu_seconds(call) for name, call in callables.items()} for _ in range(3)]
    seconds = {name: min(run[name] for run in runs) for name in callables}
    speeds = {f"{name} MB/s": len(data) / 1e6 / taken for name, taken in seconds.items()}
    ratios = {f"over {name}": seconds[name] / seconds["ours"] for name in peers}
    return {"what": what, "MB": len(data) / 1e6, **speeds, **ratios}
