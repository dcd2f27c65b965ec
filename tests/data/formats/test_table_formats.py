"""JSON lines, Arrow, Excel, databases, Delta and Iceberg: the same rows by every door, and errors without passwords."""

import contextlib
import json
import os
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aucdist.data.formats.arrow_tables import table_digest
from aucdist.data.formats.registry import DeltaFormat, SqlFormat
from aucdist.data.shards.reading import fingerprint_of, open_rows, read
from aucdist.data.sources import Source, parse_source
from aucdist.errors import InputError
from flows.config.data import source_from_name

N = 60
QUERY = "SELECT a, n, kind, y FROM staff ORDER BY id"


def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": random.normal(size=N).round(6),
            "n": np.where(random.random(N) < 0.1, np.nan, random.integers(0, 9, N)),
            "kind": random.choice(["x", "y z", "é"], N),
            "y": np.where(random.random(N) < 0.3, "yes", "no"),
        }
    )


def jsonl(folder: Path) -> dict[str, Any]:
    lines = [{k: v for k, v in row.items() if v == v} for row in frame().to_dict("records")]  # not nan
    (folder / "f.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return {"source": str(folder / "f.jsonl"), "format": "jsonl"}


def arrow(folder: Path) -> dict[str, Any]:
    with pa.OSFile(str(folder / "f.arrow"), "wb") as sink, pa.ipc.new_file(sink, table().schema) as writer:
        writer.write_table(table(), max_chunksize=7)
    return {"source": str(folder / "f.arrow"), "format": "arrow"}


def stream(folder: Path) -> dict[str, Any]:
    with pa.OSFile(str(folder / "s.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table().schema) as writer:
        writer.write_table(table())
    return {"source": str(folder / "s.arrow"), "format": "arrow"}


def excel(folder: Path) -> dict[str, Any]:
    pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install '.[excel]'")
    with pd.ExcelWriter(folder / "f.xlsx") as book:
        pd.DataFrame({"other": [1]}).to_excel(book, sheet_name="first", index=False)
        frame().to_excel(book, sheet_name="staff", index=False, startrow=2)
    return {"source": str(folder / "f.xlsx"), "format": "excel", "sheet": "staff", "skip_lines": 2}


def sqlite(folder: Path) -> dict[str, Any]:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed: pip install '.[sql]'")
    with sqlite3.connect(folder / "f.db") as database:
        frame().rename_axis("id").to_sql("staff", database)
    database.close()
    return {"source": f"sqlite:///{folder}/f.db", "format": "sql", "query": QUERY}


def duck(folder: Path) -> dict[str, Any]:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")
    with duckdb.connect(str(folder / "f.duckdb")) as database:
        database.register("given", frame().rename_axis("id").reset_index())
        database.execute("CREATE TABLE staff AS SELECT * FROM given")
    return {"source": f"duckdb:///{folder}/f.duckdb", "format": "sql", "query": QUERY}


def postgres(folder: Path) -> dict[str, Any]:
    url = os.environ.get("AUCDIST_POSTGRES")
    if url is None:
        pytest.skip("no PostgreSQL server: AUCDIST_POSTGRES=postgresql+psycopg://user:password@host/database names one")
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed: pip install '.[sql]'")
    engine = sqlalchemy.create_engine(url)
    frame().rename_axis("id").to_sql("staff", engine, if_exists="replace")
    engine.dispose()
    return {"source": url, "format": "sql", "query": QUERY}


def delta(folder: Path) -> dict[str, Any]:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[lake]'")
    deltalake.write_deltalake(str(folder / "delta"), table())
    return {"source": str(folder / "delta"), "format": "delta"}


def iceberg(folder: Path) -> dict[str, Any]:
    pytest.importorskip("pyiceberg", reason="pyiceberg is not installed: pip install '.[lake]'")
    catalogs = pytest.importorskip("pyiceberg.catalog.sql", reason="SQLAlchemy is not installed")
    catalog = catalogs.SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace("s")
    made = catalog.create_table("s.staff", schema=table().schema)
    made.append(table())
    catalog.close()
    return {"source": made.metadata_location, "format": "iceberg"}


def change_delta(url: str, rows: pa.Table) -> None:
    pytest.importorskip("deltalake").write_deltalake(url, rows, mode="overwrite")


def change_iceberg(folder: Path, rows: pa.Table) -> str:
    """Replace the rows of the table that `iceberg` has made, name its metadata in the version hint, and return its folder."""
    catalogs = pytest.importorskip("pyiceberg.catalog.sql", reason="SQLAlchemy is not installed")
    catalog = catalogs.SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    changed = catalog.load_table("s.staff")
    changed.overwrite(rows)
    metadata = Path(changed.metadata_location.removeprefix("file://"))
    metadata.with_name("version-hint.text").write_text(metadata.name)
    catalog.close()
    return str(metadata.parent.parent)


def table() -> pa.Table:
    return pa.Table.from_pandas(frame(), preserve_index=False)


DOORS: dict[str, Callable[[Path], dict[str, Any]]] = {
    of.__name__: of for of in (jsonl, arrow, stream, excel, sqlite, duck, postgres, delta, iceberg)
}


def source_of(entry: dict[str, Any], **more: Any) -> Source:
    keys = {"label": "y", "positive": "yes", "categorical": "auto", "missing": "keep"}
    return parse_source(keys | entry | more, "a test")


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("door", DOORS)
def test_every_table_format_reads_the_same_rows(tmp_path: Path, door: str) -> None:
    pq.write_table(table(), tmp_path / "f.parquet")
    expected = read(source_of({"source": str(tmp_path / "f.parquet"), "format": "parquet"}))
    source = source_of(DOORS[door](tmp_path))
    data = read(source)
    assert data.schema == expected.schema
    assert np.array_equal(data.block.rows.values, expected.block.rows.values, equal_nan=True)
    assert (data.block.y == expected.block.y).all()
    assert read(source).fingerprint == data.fingerprint
    some = read(source.model_copy(update={"where": [("a", ">", 0.0)]}))
    assert some.block.n_samples == int((frame()["a"] > 0).sum())


@pytest.mark.parametrize("door", ["jsonl", "excel", "sqlite"])
def test_from_init_to_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, door: str) -> None:
    from support.command_line import run

    monkeypatch.setattr("flows.train.run.baselines", lambda rows, observer: [])
    monkeypatch.chdir(tmp_path)
    entry = DOORS[door](tmp_path)
    settings = [part for key in entry.keys() - {"source"} for part in ("--set", f"{key}={json.dumps(entry[key])}")]
    Path("s.yaml").write_text(json.dumps(entry))
    run("init", "s.yaml", "--label", "y", "--output", "c.yaml")
    run("train", "c.yaml", "--output", "out", "--set", "model.tol=0.1")
    (folder,) = Path("out").iterdir()
    if door != "sqlite":
        scored = json.loads(run("score", folder / "model", entry["source"], "scores", "--json", *settings)[0])
        assert scored["rows"] == N


def test_a_workbook_that_would_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install '.[excel]'")
    from aucdist.data.storage import guard

    monkeypatch.setattr(guard, "ALWAYS_ALLOWED", 2**10)
    with zipfile.ZipFile(tmp_path / "f.xlsx", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet1.xml", bytes(2**24))
    said = r"bytes expand to 16777216, .* if you trust the file, save it as CSV"
    with pytest.raises(InputError, match=said):
        read(source_of({"source": str(tmp_path / "f.xlsx"), "format": "excel"}))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql+psycopg://me:secret-word@127.0.0.1:1/db", "the query failed"),
        ("nonsense://me:secret-word@host/db", "nonsense"),
        ("sqlite:////no/such/folder/f.db", "no such database file"),
        ("duckdb:////no/such/folder/f.duckdb", "the query failed"),
    ],
)
def test_errors_of_databases_have_no_passwords(url: str, message: str) -> None:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed: pip install '.[sql]'")
    with pytest.raises(InputError, match=message) as caught:
        read(source_of({"source": url, "format": "sql", "query": "SELECT 1"}))
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize("door", [sqlite, duck])
def test_an_answer_that_is_larger_than_memory_ends(door: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aucdist.data.storage.guard.total_memory", lambda: 2**24)
    endless = "WITH RECURSIVE c(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM c) SELECT a, a AS b FROM c"
    query = endless if door is sqlite else "SELECT a, a AS b FROM range(10000000) AS r(a)"
    source = source_of(door(tmp_path), query=query)
    with pytest.raises(InputError, match=r"more than this machine's memory"):
        SqlFormat(source).table(source.urls()[0])


def test_a_long_answer_is_read_whole(tmp_path: Path) -> None:
    query = "WITH RECURSIVE c(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM c WHERE a < 70000) SELECT a, nullif(a, 7) AS b FROM c"
    source = source_of(sqlite(tmp_path), query=query)
    table = SqlFormat(source).table(source.urls()[0])
    assert table.num_rows == 70000
    assert table["b"].null_count == 1
    assert table["a"].to_pylist() == list(range(1, 70001))


def test_a_query_that_fails(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"f\.db: the query failed: .*nope"):
        read(source_of(sqlite(tmp_path), query="SELECT nope FROM staff"))


def test_a_checksum_does_not_depend_on_chunks() -> None:
    whole = table()
    pieces = pa.concat_tables([whole.slice(0, 7), whole.slice(7)])
    assert table_digest(whole) == table_digest(pieces)
    assert table_digest(whole) != table_digest(whole.slice(1))
    assert table_digest(whole) != table_digest(whole.rename_columns(["b", "n", "kind", "y"]))


@pytest.mark.parametrize("door", [sqlite, duck])
@pytest.mark.parametrize(
    "query",
    [
        "drop table staff", "delete from staff", "select 1; drop table staff", "select ';'; drop table staff",
        "attach 'b.db' as b",
        "copy staff to 'out.csv'", "copy (select 1) to 'out.csv'", "create table t as select 1", "pragma query_only = off",
        "select * into t from staff", "with a as (select 1) delete from staff", "select 1 /* ' */; drop table staff; --'",
        "select $$'$$; drop table staff; select $$'$$", "select '\\'; drop table staff; --'", "vacuum into 'out.db'",
        "call force_checkpoint()", "install httpfs", "explain analyze delete from staff", "insert into staff select * from staff",
    ],
)  # fmt: skip
def test_a_database_is_only_read(door: Any, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = source_of(door(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=r"one SELECT|a SELECT, without INTO"):
        source_of({"source": source.source, "format": "sql"}, query=query)
    with contextlib.suppress(InputError):  # the database itself refuses it, too
        changed = source.model_copy(update={"query": "delete from staff" if "staff" in query else "select 1"})
        SqlFormat(changed).table(source.urls()[0])
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("door", [sqlite, duck])
@pytest.mark.parametrize(
    "query", ["SELECT ';' AS a", "-- why\n(SELECT 1 AS a)", "WITH b AS (SELECT 1 AS a) SELECT * FROM b ;\n"]
)
def test_whatever_selects_is_read(door: Any, query: str, tmp_path: Path) -> None:
    if door is sqlite and query.startswith("--"):
        query = query.replace("(", "").replace(")", "")
    source = source_of(door(tmp_path), query=query)
    table = SqlFormat(source).table(source.urls()[0])
    assert table.column_names == ["a"]


@pytest.mark.parametrize(
    "url", ["sqlite:///{}/none.db", "sqlite:///file:{}/none.db?uri=true", "duckdb:///{}/none.duckdb"]
)
def test_a_mistyped_path_makes_no_database(url: str, tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("duckdb")
    source = source_of({"source": url.format(tmp_path), "format": "sql", "query": "select 1"})
    with pytest.raises(InputError, match=r"no such database file|the query failed"):
        read(source)
    assert not list(tmp_path.iterdir())


def test_a_folder_of_delta_is_read_as_delta_and_new_rows_are_another_version(tmp_path: Path) -> None:
    """Its Parquet files may have rows that were deleted since."""
    url = delta(tmp_path)["source"]
    source = source_from_name(url, ["missing=keep", "categorical=auto"], label="y")[1]
    assert source.format == "delta"
    before = fingerprint_of(source)
    assert fingerprint_of(source) == before
    pytest.importorskip("deltalake").write_deltalake(url, table().slice(1), mode="overwrite")
    assert fingerprint_of(source) != before
    assert read(source).block.n_samples == N - 1


def test_a_source_keeps_to_the_version_of_a_table_that_was_the_newest_when_it_was_pinned(tmp_path: Path) -> None:
    """All reads of a command see the same rows, and `version` reads them again later."""
    source = source_of(delta(tmp_path))
    pinned = source.pinned()
    before = fingerprint_of(pinned)
    pytest.importorskip("deltalake").write_deltalake(source.source, table().slice(1), mode="overwrite")
    assert read(pinned).block.n_samples == open_rows(pinned).n_samples == N
    assert fingerprint_of(pinned) == before
    assert pinned.pinned().version == 0
    assert open_rows(source).source.version == 1
    with pytest.raises(InputError, match="or has no version 7"):
        read(source_of({"source": source.source, "format": "delta", "version": 7}))


def test_each_table_of_a_list_keeps_to_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run records the versions."""
    from support.command_line import result_of

    for name in "ab":
        (tmp_path / name).mkdir()
    urls = [delta(tmp_path / name)["source"] for name in "ab"]
    change_delta(urls[1], table().slice(1))
    source = source_of({"source": urls, "format": "delta"})
    pinned = source.pinned()
    assert pinned.version == [0, 1]
    before = fingerprint_of(pinned)
    for url in urls:
        change_delta(url, table().slice(3))
    assert read(pinned).block.n_samples == open_rows(pinned).n_samples == 2 * N - 1
    assert fingerprint_of(pinned) == before
    assert pinned.pinned() == pinned
    assert read(source).block.n_samples == 2 * (N - 3)
    assert read(source.model_copy(update={"version": 0})).block.n_samples == 2 * N
    with pytest.raises(InputError, match="`version` and `source` are lists of different lengths"):
        source_of({"source": urls, "format": "delta", "version": [0]})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("flows.train.run.baselines", lambda rows, observer: [])
    entry = source.model_dump(mode="json", exclude_defaults=True)
    config = {
        "name": "c",
        "data": {"source": entry, "impute": "mean"},
        "model": {"tol": 0.5},
        "cluster": {"kind": "none"},
    }
    Path("c.yaml").write_text(json.dumps(config))
    made = Path(result_of("train", "c.yaml", "--output", "runs")["run"])
    assert json.loads((made / "metrics.json").read_text())["data"]["version"] == [1, 2]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_folder_of_iceberg_is_read_in_the_snapshot_that_was_the_newest_when_it_was_pinned(tmp_path: Path) -> None:
    iceberg(tmp_path)
    folder = change_iceberg(tmp_path, table().slice(1))
    source = source_from_name(folder, ["missing=keep", "categorical=auto"], label="y")[1]
    assert source.format == "iceberg"
    pinned = source.pinned()
    before = fingerprint_of(pinned)
    assert change_iceberg(tmp_path, table().slice(3)) == folder
    assert read(pinned).block.n_samples == N - 1
    assert fingerprint_of(pinned) == before
    assert read(source).block.n_samples == N - 3
    with pytest.raises(InputError, match="or has no version 7"):
        read(source.model_copy(update={"version": 7}))


def test_a_table_that_changes_within_a_command_is_scored_in_one_version(tmp_path, monkeypatch):
    from support.command_line import run

    monkeypatch.setattr("flows.train.run.baselines", lambda rows, observer: [])
    monkeypatch.chdir(tmp_path)
    url, fetch, fetches = delta(tmp_path)["source"], DeltaFormat.table, []

    def fetch_and_change(self: DeltaFormat, url: str) -> pa.Table:
        fetched = fetch(self, url)
        fetches.append(url)
        if len(fetches) == 1:
            deltalake.write_deltalake(url, table().slice(0, 7), mode="overwrite")
        return fetched

    deltalake = pytest.importorskip("deltalake")
    run("train", url, "--label", "y", "--output", "runs", "--set", "model.tol=0.1")
    (made,) = Path("runs").iterdir()
    assert json.loads((made / "metrics.json").read_text())["data"]["version"] == 0
    monkeypatch.setattr(DeltaFormat, "table", fetch_and_change)
    assert json.loads(run("score", made, url, "scores", "--json")[0])["rows"] == N
    assert json.loads(Path("scores/_scoring.json").read_text())["reader"]["source"]["version"] == 0


@pytest.mark.parametrize("door", ["csv", "parquet", "arrow"])
def test_blanks_around_the_names_of_columns_do_not_count(tmp_path: Path, door: str) -> None:
    """CSV has names without them. Models of 0.4.0 and of other formats may have names with blanks."""
    rows = pa.table({" a": [1.0, 2.0, 3.0, 4.0], "b ": ["u", "v", "u", "v"], " y ": ["no", "yes", "no", "yes"]})
    entry = {"source": str(tmp_path / f"f.{door}"), "format": door, "label": "y", "positive": "yes"}
    if door == "csv":
        Path(entry["source"]).write_text(" a,b , y \n1,u,no\n2,v,yes\n3,u,no\n4,v,yes\n")
    elif door == "parquet":
        pq.write_table(rows, entry["source"])
    else:
        with pa.OSFile(entry["source"], "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
    for names in ([" a", "b "], ["a", "b"], ["a ", " b"]):
        data = read(parse_source(entry | {"keep": names, "categorical": names[1:]}, "a test"))
        assert data.schema.feature_names == (names[0], f"{names[1]}=u", f"{names[1]}=v")
        assert data.schema.label == "y"
        assert data.block.rows.values.tolist() == [[1, 1, 0], [2, 0, 1], [3, 1, 0], [4, 0, 1]]


def test_columns_that_differ_by_blanks_alone_are_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({" a": [1.0, 2.0], "a ": [1.0, 2.0], "y": [0, 1]}), tmp_path / "f.parquet")
    entry = {"source": str(tmp_path / "f.parquet"), "format": "parquet", "label": "y"}
    assert read(parse_source(entry, "a test")).schema.feature_names == (" a", "a ")
    said = r"f.parquet: column 'a' could be ' a' or 'a ', which differ only by spaces: rename"
    with pytest.raises(InputError, match=said):
        read(parse_source(entry | {"drop": ["a"]}, "a test"))
