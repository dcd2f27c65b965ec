"""Every registered format: it is on the page of formats, and refuses damaged files with an error that names the file.

A new format needs an example in `EXAMPLES`, and no test of its own for this.
"""

import gzip
import io
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.formats.base import FileFormat
from aucdist.data.formats.registry import FORMATS, ArrowFileFormat
from aucdist.data.shards.manifest import read_manifest, write_shards
from aucdist.data.shards.reading import open_rows
from aucdist.data.sources import parse_source
from aucdist.data.storage import guard
from aucdist.errors import InputError

PAGE = Path(__file__).parents[3] / "docs/pages/how-to/formats.md"
N = 300
GARBAGE = b"\xff" * 64
"""Neither text nor finite numbers. Formats without checksums cannot notice bytes that are other numbers."""
Entry = dict[str, Any]


def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    rows = pd.DataFrame(random.normal(size=(N, 3)), columns=["a", "b", "c"])
    return rows.assign(y=np.where(random.random(N) < 0.3, 1, 0))


def table() -> pa.Table:
    return pa.Table.from_pandas(frame(), preserve_index=False)


def in_file(content: bytes, name: str) -> Callable[[Path], tuple[Entry, Path]]:
    def write(folder: Path) -> tuple[Entry, Path]:
        (folder / name).write_bytes(content)
        return {"source": str(folder / name)}, folder / name

    return write


def csv_lines(header: bool) -> bytes:
    return frame().to_csv(index=False, header=header).encode()


def svmlight() -> bytes:
    rows = (f"{y} 1:{a} 2:{b} 3:{c}\n" for a, b, c, y in frame().itertuples(index=False))
    return "".join(rows).encode()


def arff() -> bytes:
    head = "@relation r\n" + "".join(f"@attribute {name} real\n" for name in "abc")
    return f"{head}@attribute y {{0, 1}}\n@data\n".encode() + csv_lines(header=False)


def parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(table(), out)
    return out.getvalue()


def arrow() -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, table().schema) as writer:
        writer.write_table(table())
    return out.getvalue()


def excel(folder: Path) -> tuple[Entry, Path]:
    pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install '.[excel]'")
    frame().to_excel(folder / "f.xlsx", index=False)
    return {"source": str(folder / "f.xlsx")}, folder / "f.xlsx"


def sql(folder: Path) -> tuple[Entry, Path]:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed: pip install '.[sql]'")
    with sqlite3.connect(folder / "f.db") as database:
        frame().to_sql("rows", database, index=False)
    database.close()
    return {"source": f"sqlite:///{folder}/f.db", "query": "SELECT * FROM rows"}, folder / "f.db"


def delta(folder: Path) -> tuple[Entry, Path]:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[lake]'")
    deltalake.write_deltalake(str(folder / "f"), table())
    return {"source": str(folder / "f")}, next((folder / "f").glob("*.parquet"))


def iceberg(folder: Path) -> tuple[Entry, Path]:
    pytest.importorskip("pyiceberg", reason="pyiceberg is not installed: pip install '.[lake]'")
    catalogs = pytest.importorskip("pyiceberg.catalog.sql", reason="SQLAlchemy is not installed")
    catalog = catalogs.SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/f")
    catalog.create_namespace("s")
    plain = {"write.parquet.compression-codec": "uncompressed"}  # without checksums, compressed numbers become others
    made = catalog.create_table("s.rows", schema=table().schema, properties=plain)
    made.append(table())
    catalog.close()
    return {"source": made.metadata_location}, next((folder / "f").rglob("*.parquet"))


def shards(folder: Path) -> tuple[Entry, Path]:
    X, y = frame()[["a", "b", "c"]].to_numpy(), frame()["y"].to_numpy() * 2 - 1
    write_shards([Block.of(X, y)], Schema(("a", "b", "c"), "y", ("1",), ("0",), {}), str(folder / "f"))
    return {"source": str(folder / "f")}, folder / "f" / read_manifest(str(folder / "f")).shards[0].file


EXAMPLES: dict[str, tuple[Callable[[Path], tuple[Entry, Path]], bytes]] = {
    "csv": (in_file(csv_lines(header=True), "f.csv"), b","),
    "svmlight": (in_file(svmlight(), "f.svm"), b":"),
    "keel": (in_file(arff(), "f.dat"), b","),
    "arff": (in_file(arff(), "f.arff"), b","),
    "parquet": (in_file(parquet(), "f.parquet"), b""),
    "jsonl": (in_file(frame().to_json(orient="records", lines=True).encode(), "f.jsonl"), b":"),
    "arrow": (in_file(arrow(), "f.arrow"), b""),
    "excel": (excel, b""),
    "sql": (sql, b""),
    "delta": (delta, b""),
    "iceberg": (iceberg, b""),
    "shards": (shards, b""),
}
"""Of each format what writes an example, and returns its source and the file with the rows; and for text what stands before a
value, because a text that ends between two rows is whole."""
READ = [name for name in FORMATS if name != "embedded"]
QUIET = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


def rows_of(name: str, entry: Entry) -> int:
    label = {"label": "y"} if FORMATS[name].needs_label else {}
    reader = open_rows(parse_source({"format": name} | label | entry, "a test"))
    return sum(reader.read(item).n_samples for item in reader.items)


def example(name: str, folder: Path) -> tuple[Entry, Path]:
    assert name in EXAMPLES, f"give an example of the new format {name!r} in EXAMPLES"
    entry, path = EXAMPLES[name][0](folder)
    assert rows_of(name, entry) == N
    return entry, path


def assert_refused(name: str, entry: Entry, path: Path, said: str | None = None) -> None:
    with pytest.raises(InputError, match=said) as refused:
        rows_of(name, entry)
    shown = str(refused.value)
    assert path.name in shown or entry["source"] in shown


def test_the_page_lists_every_format() -> None:
    listed = [
        line.split("|")[1] for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(r"\| `\w+`.*\|", line)
    ]
    assert {name for cell in listed for name in re.findall(r"`(\w+)`", cell)} >= set(FORMATS)


@QUIET
@pytest.mark.parametrize("truncated", [True, False])
@pytest.mark.parametrize("name", READ)
def test_a_file_that_is_truncated_or_has_garbage_in_the_middle_is_refused(
    tmp_path: Path, name: str, truncated: bool
) -> None:
    entry, path = example(name, tmp_path)
    data, before_value = path.read_bytes(), EXAMPLES[name][1]
    half = len(data) // 2
    end = data.index(before_value, half) + 1 if before_value else half
    path.write_bytes(data[:end] if truncated else data[:half] + GARBAGE + data[half + len(GARBAGE) :])
    assert_refused(name, entry, path)


def test_a_parquet_file_with_checksums_notices_other_numbers(tmp_path: Path) -> None:
    """Spark writes them by default."""
    pq.write_table(table(), tmp_path / "f.parquet", compression="none", use_dictionary=False, write_page_checksum=True)
    entry, data = {"source": str(tmp_path / "f.parquet")}, (tmp_path / "f.parquet").read_bytes()
    assert rows_of("parquet", entry) == N
    number = frame()["b"].to_numpy()[7].tobytes()
    (tmp_path / "f.parquet").write_bytes(data.replace(number, np.float64(0.5).tobytes()))
    assert_refused("parquet", entry, tmp_path / "f.parquet", "is not a valid Parquet file")


def test_a_compressed_parquet_file_is_read_in_parts(tmp_path: Path) -> None:
    """It is unpacked first, because the description of its rows is at its end."""
    (tmp_path / "f.parquet.gz").write_bytes(gzip.compress(parquet()))
    assert rows_of("parquet", {"source": str(tmp_path / "f.parquet.gz")}) == N


@QUIET
@pytest.mark.parametrize("name", READ)
def test_a_compressed_file_that_expands_too_much_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, path = example(name, tmp_path)
    monkeypatch.setattr(guard, "ALWAYS_ALLOWED", 2**16)
    packed, said = gzip.compress(path.read_bytes() + bytes(2**25)), None
    if issubclass(FORMATS[name], FileFormat) and name != "shards":
        path, said = path.with_name(f"{path.name}.gz"), "expand to"
        entry["source"] += ".gz"
    path.write_bytes(packed)
    assert_refused(name, entry, path, said)


@pytest.mark.parametrize("name", [name for name in READ if issubclass(FORMATS[name], ArrowFileFormat)])
def test_a_table_that_is_far_larger_than_its_file_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of objects in JSON, each with a key of its own: the base class checks it for every format."""
    entry, path = example(name, tmp_path)
    monkeypatch.setattr(FORMATS[name], "table", lambda *_: pa.table({"y": np.zeros(2**24), "a": np.zeros(2**24)}))
    assert_refused(name, entry, path, "expand to")
