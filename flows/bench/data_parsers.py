"""Part of the suite `data`: how fast text becomes arrays, beside the parsers one would use instead."""

import io
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from aucdist.data.formats.parts import split_source, survey_part
from aucdist.data.formats.readers import parse
from aucdist.data.sources.catalog import find
from aucdist.data.sources.source import parse_source
from aucdist.data.storage import files
from aucdist.data.storage.compression import unpacked
from flows.bench.common import Row, seconds_of

N_PARTS = 16


def parsers(slow_peers: bool) -> Iterator[Row]:
    """svmlight beside scikit-learn's parser, CSV beside pandas' and pyarrow's; one file by one and by two threads."""
    yield from svmlight()
    yield from csv()
    yield from in_parts()


def svmlight() -> Iterator[Row]:
    """Bytes in memory to CSR and labels, of which every number is Python's `float` of its text."""
    from sklearn.datasets import load_svmlight_file

    for name, times in (("a9a", 50), ("news20", 1), ("usps-esl", 5)):
        source, data = find(name), text_of(name) * times
        yield beside(
            f"svmlight {name} x {times}", data, partial(parse, data, name, source, None),
            {"scikit-learn": partial(of_stream, load_svmlight_file, data)},
        )  # fmt: skip


def csv() -> Iterator[Row]:
    """Bytes in memory to a matrix of floats and the classes; the peers keep integers as such, and columns apart."""
    import pandas as pd
    import pyarrow.csv

    for name in ("covtype-ramp-test", "kddcup99"):
        source, data = find(name), text_of(name)
        header = 0 if source.header else None
        options = pyarrow.csv.ReadOptions(use_threads=False, autogenerate_column_names=not source.header)
        peers = {
            "pandas": partial(of_stream, partial(pd.read_csv, header=header), data),
            "pyarrow": partial(of_stream, partial(pyarrow.csv.read_csv, read_options=options), data),
        }
        yield beside(f"CSV {name}", data, partial(parse, data, name, source, None), peers)


def in_parts() -> Iterator[Row]:
    """One file on disk in parts: two threads beside one, since parsing leaves the interpreter to others."""
    with tempfile.TemporaryDirectory(prefix="aucdist-bench-") as folder:
        path = Path(folder) / "a9a"
        path.write_bytes(text_of("a9a") * 50)
        source = parse_source({"source": str(path), "format": "svmlight"}, "bench")
        cut = split_source(source, N_PARTS)
        seconds = []
        for n_threads in (1, 2):
            with ThreadPoolExecutor(n_threads) as pool:
                seconds.append(seconds_of(lambda pool=pool: list(pool.map(partial(survey_part, source), cut))))  # type: ignore[misc]
        yield {
            "what": f"a9a x 50 in {len(cut)} parts", "one thread s": seconds[0], "two threads s": seconds[1],
            "gain": seconds[0] / seconds[1],
        }  # fmt: skip


def text_of(name: str) -> bytes:
    """Return what is in the one file of a data set."""
    (url,) = files.expand(find(name).source)
    return unpacked(files.read_bytes(url), url)


def of_stream(read: Callable[[io.BytesIO], Any], data: bytes) -> Any:
    """Call a reader that wants a stream, a new one each time."""
    return read(io.BytesIO(data))


def beside(what: str, data: bytes, ours: Callable[[], Any], peers: Mapping[str, Callable[[], Any]]) -> Row:
    """Return the speed of each in seconds of a core, in turns, so that whatever else the machine does falls on all of them."""

    def core_seconds(work: Callable[[], Any]) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    ours()
    works = {"ours": ours, **peers}
    turns = [{name: core_seconds(work) for name, work in works.items()} for _ in range(3)]
    seconds = {name: min(turn[name] for turn in turns) for name in works}
    speeds = {f"{name} MB/s": len(data) / 1e6 / taken for name, taken in seconds.items()}
    ratios = {f"over {name}": seconds[name] / seconds["ours"] for name in peers}
    return {"what": what, "MB": len(data) / 1e6, **speeds, **ratios}
