"""Scoring: the scores of the model, whatever the data lie in, made once."""

import json
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from scipy.special import expit
from support.linear_models import save_model
from support.scratch_room import noted_parts
from support.sharded import shard_data

from aucdist.data.block import each_of
from aucdist.data.preprocess import fit_preprocessor
from aucdist.data.shards.reading import read
from aucdist.data.shards.sharding import request
from aucdist.data.sources import Source
from aucdist.errors import InputError
from aucdist.model import batch_scoring as scoring, load_model
from aucdist.model.batch_scoring import plan_scoring, score_part, write_summary
from aucdist.probability.links import Link, LinkMap

ROWS = [
    (1.5, "tcp", 3), (0.25, "udp", -2), (7.0, "tcp", 0), (2.5, "icmp", 1), (0.5, "udp", 9), (1.0, "icmp", 4), (3.0, "tcp", 5),
]  # fmt: skip
LABELS = ["no", "yes", "no", "no", "yes", "no", "yes"]


def csv(path, **keys):
    return Source(source=str(path), format="csv", **keys)


def saved(folder, source, coef=None, intercept=-0.125, **how):
    """Save a model of the rows of a source, and return what was read."""
    data = read(source)
    names, categories = data.schema.feature_names, data.schema.categories
    how = {"scale": "maxabs"} | how
    preprocessor = fit_preprocessor(each_of([data.block]), names, log1p=None, categories=categories, **how)
    coef = np.linspace(-1, 1, data.block.n_features) if coef is None else np.array(coef)
    more = {"about": {"parameters": {}}, "reading": source.keys_for_scoring()}
    save_model(
        str(folder / "model"), coef=coef, intercept=intercept, schema=data.schema, preprocessor=preprocessor, **more
    )
    return data


@pytest.fixture
def table(tmp_path):
    """A CSV file, a model of it, and what the model says."""
    lines = ["a,kind,b,y", *(f"{a},{kind},{b},{y}" for (a, kind, b), y in zip(ROWS, LABELS, strict=True))]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    source = csv(tmp_path / "train.csv", label="y", categorical=["kind"], positive="yes")
    data = saved(tmp_path, source)
    return source, load_model(str(tmp_path / "model")).decision_function(data.block.X)


def begun_in(folder, source, output="scores", **options):
    return plan_scoring(str(folder / "model"), source, str(folder / output), **options)


def run(folder, source, **options):
    begun = begun_in(folder, source, **options)
    parts = [score_part(begun.url, begun.key, item) for item in begun.reader.items]
    done = write_summary(begun, parts)
    table = pa.concat_tables([pq.read_table(folder / "scores" / part["file"]) for part in parts])
    assert done["rows"] == table.num_rows
    return begun, table


def assert_scores(scored, scores, row_id=None):
    assert scored.column_names == ["row_id", "score", "prediction"]
    assert scored["row_id"].to_pylist() == list(range(len(scores)) if row_id is None else row_id)
    np.testing.assert_array_equal(scored["score"].to_numpy(), scores)
    assert scored["prediction"].to_pylist() == [1 if s > 0 else -1 for s in scores]


@pytest.mark.parametrize("n_parts", [1, 3])
def test_the_training_file_gets_the_scores_of_the_model(tmp_path, table, n_parts):
    source, scores = table
    begun, scored = run(tmp_path, source, n_parts=n_parts)
    assert_scores(scored, scores)
    assert (begun.reader.n_blocks > 1) == (n_parts > 1)


def test_rows_need_no_label_and_columns_may_come_in_any_order(tmp_path, table):
    _, scores = table
    lines = ["note,b,kind,a", *(f'"x, y",{b},{kind},{a}' for a, kind, b in ROWS)]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    assert_scores(run(tmp_path, csv(tmp_path / "new.csv", label="b"))[1], scores)


def test_a_parquet_table_is_scored_by_its_columns_alone(tmp_path, table):
    _, scores = table
    a, kind, b = zip(*ROWS, strict=True)
    columns = {"when": [None] * 7, "b": b, "kind": kind, "a": a}
    pq.write_table(pa.table(columns), tmp_path / "new.parquet", row_group_size=2)
    source = Source(source=str(tmp_path / "new.parquet"), format="parquet", label=0)
    begun, scored = run(tmp_path, source, n_parts=10)
    assert begun.reader.n_blocks == 4
    assert_scores(scored, scores)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_of_the_rows_are_copied_as_texts(tmp_path, table, kind):
    names, codes = ["a", "b", "kind", "y", "code"], ["007", "", "8", " x, y", "10", "11", "12"]
    rows = [(a, b, kind, y, code) for (a, kind, b), y, code in zip(ROWS, LABELS, codes, strict=True)]
    file = tmp_path / f"new.{kind}"
    if kind == "parquet":
        pq.write_table(
            pa.table({name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}), file
        )
    else:
        file.write_text("\n".join([",".join(names), *(f'{a},{b},{k},{y},"{code}"' for a, b, k, y, code in rows)]))
    source = Source(source=str(file), format=kind, label="y")
    _, scored = run(tmp_path, source, n_parts=3, copied=("code", "b", "y"))
    assert scored.column_names == ["row_id", "code", "b", "y", "score", "prediction"]
    assert scored["code"].to_pylist() == ["007", None, "8", "x, y", "10", "11", "12"]
    assert scored["b"].to_pylist() == [str(b) for _, _, b in ROWS]
    assert scored["y"].to_pylist() == LABELS
    assert_scores(scored.drop_columns(["code", "b", "y"]), table[1])
    for copied in ((), ("b", "code", "y"), ("contributions",)):
        with pytest.raises(InputError, match="name another folder"):
            run(tmp_path, source, n_parts=3, copied=copied)


def test_columns_that_cannot_be_copied_are_named_before_a_part_is_scored(tmp_path, table):
    source, _ = table
    (tmp_path / "new.csv").write_text("a,b,kind,score\n1,2,tcp,3\n")
    shard_data(request(source, str(tmp_path / "shards"), rows_per_shard=3))
    for rows, column, said in (
        (source, "cod", "unknown column in `--copy`: 'cod'"),
        (Source(source=str(tmp_path / "shards"), format="shards"), "a", "is not a table with a column 'a'"),
        (csv(tmp_path / "new.csv", label="score"), "score", "the scores already have a column 'score'"),
    ):
        with pytest.raises(InputError, match=said):
            run(tmp_path, rows, output=f"of-{column}", copied=(column,))
        assert not list((tmp_path / f"of-{column}").glob("part*"))


def test_shards_are_scored_one_by_one(tmp_path, table):
    source, scores = table
    shard_data(request(source, str(tmp_path / "shards"), rows_per_shard=3))
    begun, scored = run(tmp_path, Source(source=str(tmp_path / "shards"), format="shards"))
    assert begun.reader.n_blocks == 3
    ids = scored["row_id"].to_numpy()
    assert sorted(ids) == list(range(7))
    assert_scores(scored, scores[ids], ids)


def test_svmlight_rows_of_any_class_are_scored(tmp_path):
    X = sp.random(30, 12, 0.3, format="csr", random_state=0)
    lines = [" ".join(f"{j + 1}:{v!r}" for j, v in zip(row.indices, row.data.tolist(), strict=True)) for row in X]
    (tmp_path / "train").write_text("".join(f"{(-1) ** (i % 3 > 0)} {line}\n" for i, line in enumerate(lines)))
    saved(tmp_path, Source(source=str(tmp_path / "train"), format="svmlight", n_features=12))
    (tmp_path / "new").write_text("".join(f"7 {line}\n" for line in lines))
    _, scored = run(tmp_path, Source(source=str(tmp_path / "new"), format="svmlight"), n_parts=4)
    assert_scores(scored, load_model(str(tmp_path / "model")).decision_function(X))


def test_the_probability_is_there_if_the_model_has_one(tmp_path, table):
    source, scores = table
    model = load_model(str(tmp_path / "model"))
    save_model(
        str(tmp_path / "model"), coef=model.coef, intercept=model.intercept, schema=model.schema,
        preprocessor=model.preprocessor, about=model.about, probability=LinkMap(1.0, Link("logit"), 2.0, -0.5),
    )  # fmt: skip
    _, scored = run(tmp_path, source)
    assert scored.column_names == ["row_id", "score", "prediction", "probability"]
    np.testing.assert_allclose(scored["probability"].to_numpy(), expit(2.0 * scores - 0.5), rtol=1e-14)


def test_a_part_that_is_there_is_not_made_again(tmp_path, table, monkeypatch):
    source, scores = table
    begun = begun_in(tmp_path, source, n_parts=3)
    score_part(begun.url, begun.key, 1)
    before = (tmp_path / "scores" / "part-00001.parquet").stat().st_mtime_ns
    with monkeypatch.context() as patch:
        patch.setattr(scoring, "open_rows", None)  # nor is the survey
        again, scored = run(tmp_path, source, n_parts=3)
    assert again == begun
    assert_scores(scored, scores)
    assert (tmp_path / "scores" / "part-00001.parquet").stat().st_mtime_ns == before
    done = json.loads((tmp_path / "scores" / "_scores.json").read_text())
    assert (done["rows"], done["parts"]) == (7, len(done["files"]))
    assert_scores(
        pq.read_table(tmp_path / "scores"), scores
    )  # the folder is a data set of its own: its notes do not count


def test_each_part_is_parsed_once(tmp_path, table, monkeypatch):
    source, _ = table
    parsed = noted_parts(monkeypatch, tmp_path)
    run(tmp_path, source, n_parts=3)
    assert len(parsed) == len(set(parsed)) == 3


def test_a_folder_belongs_to_one_model_and_one_version_of_the_data(tmp_path, table):
    source, _ = table
    run(tmp_path, source)
    path = tmp_path / "train.csv"
    path.write_text(path.read_text() + "1,tcp,1,no\n")
    with pytest.raises(InputError, match="is not empty, and its files are not scores of this model"):
        run(tmp_path, source)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "letters.txt").write_text("dear")
    with pytest.raises(InputError, match="elsewhere is not empty"):
        begun_in(tmp_path, source, "elsewhere")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,kind\n1,tcp\n", "new.csv has no column 'b', which the model needs; it has: a, kind"),
        ("a,kind,b\n1,tcp,x\n", "line 2, column 'b': 'x' is not a number"),
        ("a,kind,b\n1,tcp,1\n1,ftp,1\n", "line 3, column 'kind': unknown category 'ftp'; known: icmp, tcp, udp"),
        ("a,kind,b\n", "has no rows"),
    ],
)
def test_rows_that_the_model_cannot_score_are_refused(tmp_path, table, text, said):
    (tmp_path / "new.csv").write_text(text)
    source = csv(tmp_path / "new.csv", label="a")
    with pytest.raises(InputError, match=re.escape(said)):
        run(tmp_path, source)
    (tmp_path / "new.csv").write_text("a,kind,b\n1,tcp,1\n")  # mended: nothing of the failure stands in the way
    assert run(tmp_path, source)[1].num_rows == 1


def test_a_value_that_no_training_row_lacked_is_named_by_file_row_and_column(tmp_path):
    rows = [{"x": i, "f": i % 2 == 0, "y": i % 3 == 0} for i in range(12)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = {"format": "jsonl", "missing": "keep"}
    saved(tmp_path, Source(source=str(tmp_path / "d.jsonl"), label="y", **keys))
    for name, f in (("a", "true"), ("b", "null")):
        (tmp_path / f"{name}.jsonl").write_text('{"x": 1, "f": true}\n' * 3 + f'{{"x": 2, "f": {f}}}\n')
    source = Source(source=[str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")], label="y", **keys)
    with pytest.raises(InputError, match=r"b\.jsonl, row 4, column 'f': the value is missing, but no training row"):
        run(tmp_path, source)


def test_features_of_another_kind_are_refused_and_do_not_stand_in_the_way(tmp_path, table):
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 2:1\n")
    said = r"features with names \(a, \.\.\.\), but features of svmlight files have only numbers"
    with pytest.raises(InputError, match=said):
        run(tmp_path, Source(source=str(tmp_path / "rows.svm"), format="svmlight"))
    with pytest.raises(InputError, match="not those of the training data"):
        run(tmp_path, Source(source="wine", format="embedded"))
    assert_scores(run(tmp_path, table[0])[1], table[1])


def test_scores_that_were_copied_or_moved_go_on_in_their_new_folder(tmp_path, table):
    source, scores = table
    first = begun_in(tmp_path, source, n_parts=3)
    score_part(first.url, first.key, 0)
    before = {path.name: path.read_bytes() for path in (tmp_path / "scores").iterdir()}
    shutil.copytree(tmp_path / "scores", tmp_path / "copy")
    shutil.copytree(tmp_path / "model", tmp_path / "model copy")
    begun = plan_scoring(str(tmp_path / "model copy"), source, str(tmp_path / "copy"), n_parts=3)
    assert (begun.output, begun.model) == (str(tmp_path / "copy"), str(tmp_path / "model copy"))
    shutil.rmtree(tmp_path / "model")  # nothing of the first place is needed
    write_summary(begun, [score_part(begun.url, begun.key, i) for i in range(begun.reader.n_blocks)])
    assert_scores(pq.read_table(tmp_path / "copy"), scores)
    assert {path.name: path.read_bytes() for path in (tmp_path / "scores").iterdir()} == before


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"x" * 100])
def test_a_part_that_is_damaged_is_scored_again(tmp_path, table, damage):
    source, scores = table
    run(tmp_path, source, n_parts=3)
    (tmp_path / "scores" / "part-00001.parquet").write_bytes(damage)
    pq.write_table(pa.table({"row_id": [0]}), tmp_path / "scores" / "part-00000.parquet")  # and one of something else
    assert_scores(run(tmp_path, source, n_parts=3)[1], scores)


def test_of_two_models_that_score_into_one_folder_at_once_one_is_refused(tmp_path, table):
    source, _ = table
    shutil.copytree(tmp_path / "model", tmp_path / "other" / "model")
    about = tmp_path / "other" / "model" / "model.json"
    about.write_text(f"{about.read_text()} ")  # another model by its digest
    both = []

    def meanwhile(survey, parts):
        both.append(plan_scoring(str(tmp_path / "other" / "model"), source, str(tmp_path / "scores")))
        return map(survey, parts)

    with pytest.raises(InputError, match=r"another run has replaced .*_scoring\.json"):
        begun_in(tmp_path, source, each=meanwhile)
    assert score_part(both[0].url, both[0].key, 0)["rows"] == len(ROWS)


@pytest.mark.parametrize(
    "change", ["parts elsewhere", "{", "[]", '{"key": 1}', "[" * 100_000, '{"key": "x", "reader": []}']
)
def test_notes_of_a_scoring_that_are_damaged_or_planted(tmp_path, table, change):
    source, _ = table
    begun, _ = run(tmp_path, source, n_parts=3)
    path = tmp_path / "scores" / "_scoring.json"
    if change == "parts elsewhere":
        (tmp_path / "secret.csv").write_text((tmp_path / "train.csv").read_text().replace("1.5", "9"))
        content = json.loads(path.read_text())
        for part in content["reader"]["parts"]:
            part["url"] = str(tmp_path / "secret.csv")
        path.write_text(json.dumps(content))
        resumed = begun_in(tmp_path, source, n_parts=3)
        assert {part.url for part in resumed.reader.parts} == {str(source.source)}
        return
    path.write_text(change)
    with pytest.raises(InputError, match=r"_scoring\.json is damaged"):
        begun_in(tmp_path, source, n_parts=3)
    with pytest.raises(InputError, match=r"_scoring\.json is damaged"):
        scoring._scoring_at.__wrapped__(begun.url, begun.key)


@pytest.fixture
def with_rules(tmp_path):
    """A model of a file without a header, with semicolons, dates, missing values and categories; and its source."""
    lines = ["7;p;31.12.2024;no", "2;;01.01.2025;yes", ";q;;no"]
    (tmp_path / "train.data").write_text("\n".join(lines) + "\n")
    source = csv(
        tmp_path / "train.data", header=False, columns=["a", "kind", "when", "y"], separator=";", label="y",
        categorical=["kind"], dates={"when": ["days"]}, date_format="%d.%m.%Y", missing="keep", unknown="ignore",
    )  # fmt: skip
    saved(tmp_path, source, [1.0, 10.0, 20.0, 40.0, 1e-4], 0.0, scale="none", impute="mean")
    return load_model(str(tmp_path / "model"))


def test_a_model_carries_the_rules_by_which_its_rows_were_read(tmp_path, with_rules):
    kept = {"format", "header", "columns", "separator", "missing", "unknown", "date_format"}
    assert with_rules.reading.keys() == kept
    (tmp_path / "new.data").write_text("7;p;31.12.2024;?\n2;r;;?\n")
    source = csv(tmp_path / "new.data", label="y")
    begun, scored = run(tmp_path, source)
    middle = (20088 + 20089) / 2
    np.testing.assert_allclose(scored["score"].to_numpy(), [7 + 20 + 2.0088, 2 + middle * 1e-4], rtol=1e-14)
    assert (begun.reader.missing, begun.reader.unknown) == ({"when": 1}, {"kind": 1})
    part = {"file": "part-00000.parquet", "rows": 2, "training_rows": [0, 0]}
    again = write_summary(begun_in(tmp_path, source), [part])
    assert again["unknown"] == {"kind": 1}  # of a resumed run too


def test_keys_that_are_given_count_before_the_rules_of_the_model(tmp_path, with_rules):
    (tmp_path / "new.csv").write_text("when,extra,kind,a\n2024-12-31,x,p,7\n")
    keys = {"label": "a", "header": True, "columns": None, "separator": ",", "date_format": None}
    source = csv(tmp_path / "new.csv", **keys)
    _, scored = run(tmp_path, source)
    np.testing.assert_allclose(scored["score"].to_numpy(), [7 + 20 + 2.0088], rtol=1e-14)
    (tmp_path / "new.csv").write_text("when,extra,kind,a\n2024-12-31,x,r,7\n")
    with pytest.raises(InputError, match="unknown category 'r'"):
        begun_in(tmp_path, csv(tmp_path / "new.csv", unknown="error", **keys), "out")
    (tmp_path / "new.csv").write_text("when,kind\n2024-12-31,r\n")
    with pytest.raises(InputError, match=r"new\.csv has no column 'a', which the model needs; it has: kind, when"):
        begun_in(tmp_path, source, "out")


def test_rules_of_a_model_that_are_damaged_are_refused(tmp_path, with_rules):
    path = tmp_path / "model" / "model.json"
    path.write_text(path.read_text().replace('"separator": ";"', '"separator": "/etc"'))
    (tmp_path / "new.data").write_text("7;p;31.12.2024;?\n")
    with pytest.raises(InputError, match=r"`reading\.separator`"):
        begun_in(tmp_path, csv(tmp_path / "new.data", label="y"), "out")
