"""Folders of Parquet files that are partitioned as Hive does."""

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest
from hypothesis import given, strategies as st
from support.parts import all_blocks

from aucdist.data.formats.arrow_tables import path_values, typed
from aucdist.data.shards.reading import open_rows, read
from aucdist.data.sources import Source
from aucdist.errors import InputError


@pytest.fixture
def frame():
    r = np.random.default_rng(0)
    n = 240
    return pd.DataFrame(
        {
            "x": r.normal(size=n), "y": np.arange(n) % 3 == 0, "year": r.choice([2023, 2024, 2025], n),
            "city": r.choice(["São Paulo", "a/b", "x=1"], n), "user": r.integers(0, 9, n),
        }
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path, frame):
    frame.to_parquet(tmp_path / "rows", partition_cols=["year", "city"], index=False)
    return tmp_path / "rows"


def source(folder, **options):
    return Source(source=f"{folder}/", format="parquet", label="y", **options)


def in_parts(source, n_parts=5, schema=None):
    reader = open_rows(source, n_parts=n_parts, schema=schema)
    blocks = all_blocks(reader)
    return reader, np.vstack([b.X for b in blocks]), np.concatenate([b.y for b in blocks])


def assert_same_rows(X, y, wanted_X, wanted_y):
    mine, other = (np.column_stack((a, b)).astype(float) for a, b in ((X, y), (wanted_X, wanted_y)))
    assert mine[np.lexsort(mine.T)].tolist() == other[np.lexsort(other.T)].tolist()


def test_the_columns_of_the_folders_are_those_that_pyarrow_finds(folder):
    table = ds.dataset(folder, partitioning="hive").to_table().to_pandas()
    data = read(source(folder, categorical=["city"], positive=1))
    names = ("x", "user", "year", "city=São Paulo", "city=a/b", "city=x=1")
    assert data.schema.feature_names == names
    columns = [table[c] if c in table else table["city"] == c.removeprefix("city=") for c in names]
    assert_same_rows(data.block.X, data.block.y, np.column_stack(columns), np.where(table["y"], 1, -1))


@pytest.mark.parametrize("categorical", ["auto", ["city"], ["city", "year"]])
def test_parts_have_the_rows_of_one_reading(folder, categorical):
    of = source(folder, categorical=categorical)
    data = read(of)
    reader, X, y = in_parts(of)
    assert reader.schema == data.schema
    assert X.tolist() == data.block.X.tolist()
    assert y.tolist() == data.block.y.tolist()


@pytest.mark.parametrize(
    ("where", "query"),
    [
        ([["year", "=", 2024]], "year == 2024"),
        ([["year", ">=", 2024], ["x", ">", 0.0]], "year >= 2024 and x > 0"),
        ([["city", "in", ["a/b", "nowhere"]]], "city == 'a/b'"),
        ([["city", "!=", "a/b"], ["year", "not in", [2023]]], "city != 'a/b' and year != 2023"),
    ],
)
def test_where_may_name_them_and_files_of_other_folders_are_not_read(folder, frame, where, query):
    of = source(folder, categorical=["city"], where=where, positive=1)
    for path in folder.rglob("*.parquet"):  # would a row of it be read, the file would be an error
        folders = frame[["year", "city"]].astype(str) == pd.Series(path_values(str(path)))
        of_folders = " and ".join(part for part in query.split(" and ") if not part.startswith("x"))
        if frame[folders.all(axis=1)].query(of_folders).empty:
            data = path.read_bytes()
            path.write_bytes(data[:4] + b"\x00" * 40 + data[44:])
    expected = frame.query(query)
    for X, y in ((read(of).block.X, read(of).block.y), in_parts(of)[1:]):
        assert_same_rows(X[:, :3], y, expected[["x", "user", "year"]], np.where(expected["y"], 1, -1))


def test_a_label_and_a_group_may_be_folders(tmp_path, frame):
    frame.drop(columns="city").to_parquet(tmp_path / "rows", partition_cols=["y", "user"], index=False)
    of = source(tmp_path / "rows", groups="user", positive="true")
    data = read(of)
    assert_same_rows(data.block.X, data.block.y, frame[["x", "year"]], np.where(frame["y"], 1, -1))
    assert len(np.unique(data.block.group)) == 9
    _, X, y = in_parts(of, 3)
    assert X.tolist() == data.block.X.tolist()
    assert y.tolist() == data.block.y.tolist()


def test_a_new_folder_is_encoded_like_the_training_data(folder, tmp_path):
    schema = read(source(folder, categorical=["city"], positive=1)).schema
    new = pd.DataFrame(
        {"x": [0.5, 1.5], "y": [True, False], "user": [1, 2], "year": [2026, 2026], "city": ["a/b", "a/b"]}
    )
    new.to_parquet(tmp_path / "new", partition_cols=["year", "city"], index=False)
    (file,) = (tmp_path / "new").rglob("*.parquet")
    for place in (f"{tmp_path}/new/", f"{tmp_path}/new/year=2026/", str(file)):
        data = read(
            source(folder, categorical=["city"], positive=1).model_copy(update={"source": place}), schema=schema
        )
        assert data.block.X.tolist() == [[0.5, 1, 2026, 0, 1, 0], [1.5, 2, 2026, 0, 1, 0]]


def test_a_missing_value_of_a_folder(tmp_path):
    frame = pd.DataFrame(
        {"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1], "k": ["a", None, "b", "a"], "n": [1, 2, None, 4]}
    )
    frame["n"] = frame["n"].astype("Int64")
    frame.to_parquet(tmp_path / "rows", partition_cols=["k", "n"], index=False)
    with pytest.raises(InputError, match=r"column 'n': the value is missing"):
        read(source(tmp_path / "rows", keep=["x", "n"]))
    data = read(source(tmp_path / "rows", categorical=["k"], missing="keep", keep=["x", "n", "k"]))
    X = data.block.X[np.argsort(data.block.X[:, 0])]
    assert X[:, 1].tolist()[:2] == [1, 2]
    assert np.isnan(X[2, 1])
    assert X[:, 2:].sum(axis=1).tolist() == [1, 1, 1, 1]
    assert len(read(source(tmp_path / "rows", where=[["n", ">", 0]], keep=["x"])).block.y) == 3
    assert len(read(source(tmp_path / "rows", where=[["k", "!=", "zz"]], keep=["x"])).block.y) == 3  # as of any null


def test_integers_are_texts_where_another_folder_of_the_column_has_a_text(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]})
    for i, code in enumerate(("007", "7", "A7", "__HIVE_DEFAULT_PARTITION__")):
        (tmp_path / f"code={code}").mkdir()
        frame.assign(x=frame["x"] + i).to_parquet(tmp_path / f"code={code}" / "a.parquet")
    of = source(tmp_path, categorical="auto", missing="keep", positive=1)
    data = read(of)
    names = ("x", "code=(missing)", "code=007", "code=7", "code=A7")
    assert data.schema.feature_names == in_parts(of, 4)[0].schema.feature_names == names
    assert data.block.X[:, 1:].sum(axis=0).tolist() == [4, 4, 4, 4]
    alone = of.model_copy(update={"source": f"{tmp_path}/code=007/"})
    assert read(alone, schema=data.schema).block.X[0].tolist() == [1, 0, 1, 0, 0]
    assert len(read(of.model_copy(update={"where": [("code", "=", "007")]})).block.y) == 4


def test_another_value_in_the_file_is_an_error_and_the_same_is_none(tmp_path, frame):
    of_year = frame[frame["year"] == 2024][["x", "y", "year"]]
    (tmp_path / "year=2024").mkdir()
    of_year.to_parquet(tmp_path / "year=2024" / "a.parquet", index=False)
    assert read(source(tmp_path)).schema.feature_names == ("x", "year")
    of_year.assign(year=[2023, *[2024] * (len(of_year) - 1)]).to_parquet(
        tmp_path / "year=2024" / "a.parquet", index=False
    )
    for reading in (read, in_parts):
        said = r"column 'year': the file has the value '2023', but its folder says '2024'"
        with pytest.raises(InputError, match=said):
            reading(source(tmp_path))
    assert read(source(tmp_path, drop=["year"])).schema.feature_names == ("x",)


def test_where_that_does_not_fit_the_columns_is_refused(folder, tmp_path):
    for reading in (read, in_parts):
        with pytest.raises(InputError, match=r"`where` cannot be evaluated for the types of its columns"):
            reading(source(folder, where=[["year", "=", "a"]], categorical=["city"]))
        with pytest.raises(InputError, match=r"nth"):
            reading(source(folder, where=[["nth", "=", "a"]], categorical=["city"]))
    with pytest.raises(InputError, match=r"two folders of its path have a value of 'a'"):
        path_values("/x/a=1/a=2/f.parquet")


def test_another_folder_is_another_fingerprint(tmp_path):
    prints = set()
    for year in (2024, 2025):
        path = tmp_path / str(year) / f"year={year}"
        path.mkdir(parents=True)
        pd.DataFrame({"x": [1.0, 2.0], "y": [0, 1]}).to_parquet(path / "a.parquet", index=False)
        prints.add(read(source(path.parent)).fingerprint)
    assert len(prints) == 2


def test_which_folders_count():
    assert path_values("/data/a=1/rows/year=2024/month=01/part-0.parquet") == {"year": "2024", "month": "01"}
    assert path_values("/data/year=2024/rows/part.parquet") == {}
    assert path_values("/data/=3/part.parquet") == {}
    assert path_values("x=1.parquet") == {}
    assert path_values("https://host/k=a%2Fb/p.parquet?key=v/x") == {"k": "a/b"}


@given(st.text(st.characters(codec="utf-8", exclude_characters="/%"), max_size=12))
def test_only_integers_that_a_float_has_are_numbers(text):
    value = typed(text)
    assert value == text or (text == "__HIVE_DEFAULT_PARTITION__" and value is None) or float(value) == int(text)
    assert typed("9" * 15) == 10**15 - 1
    assert typed("9" * 16) == "9" * 16
    assert [typed(v) for v in ("01", "-5", "0.5", "", "1e3", "+1")] == [1, -5, "0.5", "", "1e3", "+1"]
