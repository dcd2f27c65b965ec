"""The guard of what enters: each test has an input that once filled the memory or the disk, or never ended."""

import asyncio
import io
import os
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from aucdist.data.formats.registry import ArrowFormat, ExcelFormat, JsonLinesFormat
from aucdist.data.own_files import parse_checked, read_parquet
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.data.storage import files, guard, s3, web
from aucdist.data.storage.faults import BadAnswer
from aucdist.errors import InputError
from aucdist.store import PromotionRecord
from flows.cli import app
from flows.config.loading import parse_yaml, read_mapping

SOURCE = Source(source="f", format="csv", label="y")


def stream_of(table, compression=None, open_writer=pa.ipc.new_stream):
    out = io.BytesIO()
    with open_writer(out, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return out.getvalue()


@pytest.mark.parametrize("open_writer", [pa.ipc.new_stream, pa.ipc.new_file])
def test_an_arrow_file_that_unpacks_beyond_measure_is_refused_before_it_does(open_writer):
    data = stream_of(pa.table({"a": np.zeros(2**24)}), "zstd", open_writer)
    before = pa.total_allocated_bytes()
    said = rf"x.arrow: {len(data)} bytes expand to 1\d+, and at most \d+ are read; if you trust"
    with pytest.raises(InputError, match=said):
        ArrowFormat(SOURCE).table(data, "x.arrow")
    assert pa.total_allocated_bytes() - before < 2**20
    table = pa.table({"a": np.arange(1000.0), "b": pa.array(["x", None] * 500).dictionary_encode()})
    for compression in ("zstd", "lz4", None):
        assert ArrowFormat(SOURCE).table(stream_of(table, compression, open_writer), "x.arrow").equals(table)


def test_columns_without_bytes_count(monkeypatch):
    with pytest.raises(InputError, match="expand to"):
        ArrowFormat(SOURCE).table(stream_of(pa.table({"a": pa.nulls(2**24)})), "x.arrow")


@pytest.mark.parametrize("kind", ["dictionary", "view"])
def test_one_long_text_for_many_rows(kind, tmp_path):
    text = "x" * 2**20
    if kind == "dictionary":
        column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2**12, np.int32)), [text])
    else:
        column = pa.array([text] * 2**6, pa.string()).cast(pa.string_view())
        array = pa.array([text], pa.string_view())
        view = np.frombuffer(array.buffers()[1], np.uint8)[:16]
        column = pa.Array.from_buffers(
            pa.string_view(), 2**12, [None, pa.py_buffer(np.tile(view, 2**12)), array.buffers()[2]]
        )
    (tmp_path / "x.arrow").write_bytes(stream_of(pa.table({"a": column, "y": ["p", "n"] * 2**11})))
    with pytest.raises(InputError, match="expand to 429"):
        read(Source(source=str(tmp_path / "x.arrow"), format="arrow", label="y", positive="p", categorical="auto"))
    table = pa.table(
        {"a": pa.DictionaryArray.from_arrays(pa.array(np.zeros(2**8, np.int32)), [text]), "y": ["p", "n"] * 2**7}
    )
    pq.write_table(table.cast(pa.schema({"a": pa.string(), "y": pa.string()})), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="bytes expand to 268435456"):
        read(Source(source=str(tmp_path / "x.parquet"), format="parquet", label="y", positive="p", categorical="auto"))


def workbook(xml=None, cells=(("A1", "a"), ("A2", 1))):
    book, out = openpyxl.Workbook(), io.BytesIO()
    for place, value in cells:
        book.active[place] = value
    book.save(out)
    if xml is None:
        return out.getvalue()
    changed = io.BytesIO()
    with zipfile.ZipFile(out) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b"</sheetData>", xml + b"</sheetData>") if "sheet1" in name else data)
    return changed.getvalue()


def test_a_cell_far_from_the_others_is_named():
    far = b'<row r="1000000000"><c r="A1000000000"><v>1</v></c></row>'
    for data, message in (
        (workbook(far), "row 1000000000 is beyond"),
        (
            workbook(cells=[("A1", "a"), ("A1048576", 1), ("XFD1", "b")]),
            "its 3 cells span 1048576 rows of 16384 columns",
        ),
        (workbook(b'<row r="300000"><c r="XFD300000"><v>1</v></c></row>'), "because one is in XFD300000"),
    ):
        start = time.monotonic()
        with pytest.raises(InputError, match=message):
            ExcelFormat(SOURCE).table(data, "x.xlsx")
        assert time.monotonic() - start < 5
    assert ExcelFormat(SOURCE).table(workbook(), "x.xlsx").to_pydict() == {"a": [1]}
    assert ExcelFormat(SOURCE).table(workbook(cells=[("A1", "a"), ("C3", 1)]), "x.xlsx").num_rows == 2


def test_json_lines_that_are_no_text():
    for data in (b'{"a": "\xff"}\n', b'{"\xff": 1}\n', b"[" * 100_000):
        with pytest.raises(InputError, match=r"x.jsonl: not JSON objects in UTF-8|x.jsonl is damaged"):
            JsonLinesFormat(SOURCE).table(data, "x.jsonl")


def test_a_configuration_in_another_encoding_than_utf_8(tmp_path):
    (tmp_path / "x.yaml").write_bytes("city: Orléans\n".encode("latin-1"))
    with pytest.raises(
        InputError, match=r"cannot read .*x.yaml: it is not UTF-8 text. Save it in your editor with"
    ) as caught:
        read_mapping(tmp_path / "x.yaml")
    assert "codec" not in str(caught.value)
    (tmp_path / "x.yaml").write_text("city: Orléans\n", encoding="utf-8")
    assert read_mapping(tmp_path / "x.yaml") == {"city": "Orléans"}


@pytest.mark.parametrize("kind", ["pipe", "device", "large", "bytes", "folder"])
def test_a_configuration_that_is_no_small_file(tmp_path, kind):
    path = tmp_path / "x.yaml"
    make = {
        "pipe": lambda: os.mkfifo(path), "device": lambda: path.symlink_to("/dev/zero"),
        "large": lambda: path.write_bytes(b"a: 1\n" * 2**20), "bytes": lambda: path.write_bytes(b"\xff"), "folder": path.mkdir,
    }  # fmt: skip
    make[kind]()
    with pytest.raises(InputError, match=r"cannot read .*x.yaml"):
        read_mapping(path)
    for args in (["train", str(path)], ["data", "show", str(path)], ["keep-current", str(path)]):
        told = CliRunner().invoke(app, args)
        assert told.exit_code == 2, (args, told.output)


def test_aliases_that_multiply():
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    laughs += "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 12))
    merges = "a0: &a0 {x: 1}\n" + "".join(f"a{k}: &a{k} {{<<: [*a{k - 1}, *a{k - 1}]}}\n" for k in range(1, 40))
    for text in (laughs, merges, "a: &a [*a]", "[" * 1000 + "]" * 1000, "a: " + "9" * 5000):
        with pytest.raises(InputError, match=r"x: this is not valid YAML|x, line"):
            parse_yaml(text, "x")
    assert parse_yaml("a: &a {b: 1}\nc: [*a, *a]", "x") == {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}


@pytest.fixture
def endless(tmp_path, monkeypatch):
    """Serves a body without an end, of which the test counts the bytes."""
    monkeypatch.setenv("AUCDIST_CACHE", str(tmp_path))

    class Endless(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            if "stated" in self.path:
                self.send_header("Content-Length", str(2**50))
            else:
                self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            chunk = bytes(2**20)
            try:
                while True:
                    self.wfile.write(chunk if "stated" in self.path else b"100000\r\n" + chunk + b"\r\n")
            except OSError:
                self.close_connection = True

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_download_without_an_end(endless, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"http.*stated would need 1125899906842624 bytes"):
        files.read_bytes(f"{endless}/stated")
    monkeypatch.setattr(guard, "MAX_UNSTATED", 2**25)
    with pytest.raises(InputError, match="the server does not state its size, and it has more than 33554432 bytes"):
        files.read_bytes(f"{endless}/x")
    monkeypatch.setenv("AUCDIST_DOWNLOAD_BYTES", str(2**26))
    with pytest.raises(InputError, match="more than 67108864"):
        files.read_bytes(f"{endless}/x")
    monkeypatch.setattr(guard.shutil, "disk_usage", lambda folder: type("Disk", (), {"total": 2**40, "free": 2**29}))
    with pytest.raises(InputError, match=r"the disk of .* would be full"):
        files.read_bytes(f"{endless}/x")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_what_a_killed_download_left_is_removed_at_the_next_start(tmp_path, monkeypatch):
    monkeypatch.setenv("AUCDIST_CACHE", str(tmp_path))
    left, living, begun = (tmp_path / name / ".1.part" for name in "abc")
    for path in (left, living, begun):
        path.parent.mkdir()
        path.write_bytes(b"x")
        os.utime(path, (0, 0))
    begun.touch()  # by a process that has not locked it yet
    with living.open("rb") as file:
        web.fcntl.flock(file, web.fcntl.LOCK_EX)
        assert web.cached_copy("http://host/x", None, lambda file: file.write(b"rows")).read_bytes() == b"rows"
    assert (left.exists(), living.exists(), begun.exists()) == (False, True, True)


@pytest.mark.parametrize(
    ("keys", "most"), [(lambda n: ["a"], 2), (lambda n: [], 101), (lambda n: [f"a{n:09d}"], 102), (None, 2)]
)
def test_a_listing_that_is_always_truncated(keys, most, monkeypatch):
    monkeypatch.setattr(s3, "MAX_LISTED", 1000)
    n_pages = 0

    class Server:
        async def _list_pages(self, method, **names):
            nonlocal n_pages
            while True:
                n_pages += 1
                listed = [f"k{n_pages}-{i}" for i in range(600)] if keys is None else keys(n_pages)
                yield {"Contents": [{"Key": key} for key in listed], "IsTruncated": True}

    async def read_all():
        async for _ in s3.pages(Server(), "list_objects_v2", Bucket="b"):
            pass

    with pytest.raises((BadAnswer, InputError), match=r"its listing has no end|lists more than 1,000 objects"):
        asyncio.run(read_all())
    assert n_pages == most


def test_names_of_parquet_columns_that_are_no_text(tmp_path):
    pq.write_table(pa.table({"number": [1.0, 2.0], "label": ["p", "n"]}), tmp_path / "x.parquet", store_schema=False)
    data = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(data.replace(b"number", b"numbe\x9b"))
    with pytest.raises(InputError, match="is not a valid Parquet file"):
        read(Source(source=str(tmp_path / "x.parquet"), format="parquet", label="label", positive="p"))


def test_our_own_tables_have_their_schema(tmp_path):
    table = pa.table({"row_id": [0, 1], "score": [1.0, 2.0]})
    # What pandas writes beside the columns is not read, so it may be damaged.
    pq.write_table(table.replace_schema_metadata({"pandas": "{no JSON"}), tmp_path / "x.parquet")
    columns = {"row_id": pa.int64(), "score": pa.float64()}
    assert read_parquet(str(tmp_path / "x.parquet"), columns)["score"].tolist() == [1.0, 2.0]
    for changed, message in (
        (table.drop_columns(["score"]), "no columns 'score'"),
        (table.set_column(1, "score", [[1.0, float("inf")]]), "row 2, column 'score': inf is not finite"),
        (table.set_column(1, "score", [[None, 1.0]]), "row 1, column 'score': the value is missing"),
        (table.set_column(0, "row_id", [[0, 0]]), "are negative, or not all different"),
        (table.set_column(1, "score", [["a", "b"]]), "is damaged"),
    ):
        pq.write_table(changed, tmp_path / "x.parquet")
        with pytest.raises(InputError, match=message):
            read_parquet(str(tmp_path / "x.parquet"), columns)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"[" * 10**5, b"\xff", b'{"x": 1e999}', b'{"x": NaN}', b'{"x": ' + b"9" * 5000 + b"}", b'{"x": "\\ud8"}']
)  # fmt: skip
def test_json_that_is_damaged(data):
    with pytest.raises(InputError, match="w is damaged"):
        parse_checked(data, PromotionRecord, "w")
    with pytest.raises(InputError, match="w is damaged"):
        parse_checked(b'{"decision": ' + (data or b"?") + b"}", PromotionRecord, "w")
