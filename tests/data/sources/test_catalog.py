"""The catalog, and every data set of it that is here."""

import numpy as np
import pytest
from support.tables import table_beside

from aucdist.data.shards.reading import read
from aucdist.data.sources import Source, catalog, catalog_folder, data_root, find_source, is_present, parse_source
from aucdist.errors import InputError

REFUSED = {"cleveland-0_vs_4": "line 103, column 'ca': the value is missing"}
ENTRIES = catalog()


@pytest.mark.parametrize("name", [name for name, source in ENTRIES.items() if source.format != "embedded"])
def test_every_data_set_that_is_here_is_what_its_entry_says(name, data_dir, monkeypatch):
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))
    source = find_source(name)
    if not is_present(source):
        pytest.skip(f"{name} is not in the data folder")
    if name in REFUSED:
        with pytest.raises(InputError, match=REFUSED[name]):
            read(source, name=name)
        return
    assert source.rows
    assert source.features
    assert source.classes
    data = read(source, name=name)
    block = data.block
    positives = sum(source.classes[c] for c in data.schema.positive)
    assert (block.n_samples, block.n_features) == (source.rows, source.features)
    assert int((block.y == 1).sum()) == positives
    assert len(data.schema.feature_names) == len(set(data.schema.feature_names)) == source.features
    assert np.isfinite(block.rows.values).all()
    assert block.rows.values.dtype == np.float64


@pytest.mark.parametrize("name", ["breast_cancer", "digits", "iris", "wine"])
def test_every_embedded_set_is_what_its_entry_says(name):
    source = find_source(name)
    data = read(source, name=name)
    assert int((data.block.y == 1).sum()) == source.classes[str(source.positive)]


def test_all_of_the_collections_are_listed(data_dir, monkeypatch):
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))
    listed = {part for s in ENTRIES.values() for part in ([s.source] if isinstance(s.source, str) else s.source)}
    stored = {str(p.relative_to(data_dir)) for p in data_dir.rglob("*") if p.is_file()}
    # Tables as found and rows with queries have no entry: they are examples of what users bring.
    left_out = {p for p in stored if p == "MANIFEST.csv" or "/5fold/" in p or p.endswith(".arff.xz")}
    left_out |= {p for p in stored if p.startswith(("tables/", "rank/"))}
    assert stored - left_out <= listed


@pytest.mark.parametrize(
    ("name", "n_pos"),
    [("dna.scale", 464), ("pendigits", 779), ("vowel", 48), ("letter.scale", 594), ("svmguide4", 44), ("a9a", 7841),
     ("diabetes", 268), ("splice", 483), ("magic04", 6688), ("skin_nonskin", 50859), ("digits", 174)],
)  # fmt: skip
def test_positive_classes_are_those_of_the_papers(name, n_pos):
    source = find_source(name)
    assert source.classes[str(source.positive)] == n_pos


def test_kdd_cup_99_has_the_rare_attacks_and_its_symbols_as_features(data_dir, monkeypatch):
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))
    source = find_source("kddcup99")
    assert sum(source.classes[name] for name in source.positive) == 5285
    assert len(source.columns) == 42
    assert (source.rows, source.features) == (494_021, 118)


def test_absent_sets_say_so(data_dir, monkeypatch):
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))
    for name in ("covtype.binary", "ccat", "astro-physics", "sector"):
        assert not is_present(find_source(name))
        assert "Not in the data folder" in find_source(name).note
    with pytest.raises(InputError, match=r"cannot read .*absent/ccat\.train\.svmlight: no such file"):
        read(find_source("ccat"))


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"unknown data set 'kddcup9'\. Did you mean 'kddcup99'"):
        find_source("kddcup9")


def test_the_data_root_is_set_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("AUCDIST_DATA", str(tmp_path))
    assert data_root() == tmp_path
    monkeypatch.delenv("AUCDIST_DATA")
    assert data_root().parts[-2:] == ("shared", "data")
    assert catalog_folder().parts[-2:] == ("configs", "data")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no data catalog in"),
        ({"a.yaml": "x: {source: f, format: svmlight, postive: 1}"}, "a.yaml, x: unknown key 'postive'"),
        ({"a.yaml": "x: {source: f, format: svmlight}", "b.yaml": "x: {source: g, format: svmlight}"}, "twice"),
        ({"a.yaml": "x: {source: f"}, "a.yaml is not valid YAML"),
        ({"a.yaml": "- x"}, "write names of data sets with their sources"),
        ({"a.yaml": "x: 3"}, "a.yaml, x: an entry must have lines of the form `key: value`"),
    ],
)
def test_a_wrong_catalog_is_refused(tmp_path, files, said):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        catalog(tmp_path)
    assert said in str(caught.value)


# ---- what a source may say, and the errors for what it may not --------------------------------


def test_defaults_survive_being_written_out():
    source = Source(source="a.csv", format="csv", label=-1, positive=["x", 1, 2.5], classes={"x": 3, 1: 4})
    assert Source.model_validate(source.model_dump(mode="json")) == source


@pytest.mark.parametrize(("entry", "said"), table_beside(__file__))
def test_a_wrong_entry_is_refused_with_its_place(entry, said):
    with pytest.raises(InputError) as caught:
        parse_source(entry, "sets.yaml, mine")
    assert said in str(caught.value)
    assert str(caught.value).startswith("sets.yaml, mine: ")
