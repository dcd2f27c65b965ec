"""Bad and hostile input: one message of one screen, at once and in bounded memory; exit code 2, no traceback, nothing written."""

import itertools
import shlex
from pathlib import Path

import pytest
import yaml
from support.command_line import refused, result_of, run, sets
from support.s3_servers import MOCK, new_connections, point_to

from aucdist.data.storage import faults

SVM = "".join(f"{'+1' if i % 3 == 0 else '-1'} 1:{i} 2:{i * i % 7}\n" for i in range(30))
CSV = "a,b,label\n" + "".join(f"{i},{i * i % 7},{'yes' if i % 3 == 0 else 'no'}\n" for i in range(30))
CSV_SOURCE = {"format": "csv", "label": "label", "positive": "yes"}
LEVELS = "abcdefghijklmnop"

# file name and content (None: no file), the source beside its path, what the message must name
DATA: dict[str, tuple[str, str | None, dict[str, object], list[str]]] = {
    "missing file": ("none.svm", None, {"format": "svmlight"}, ["none.svm"]),
    "empty file": ("empty.svm", "", {"format": "svmlight"}, ["empty.svm"]),
    "malformed svmlight line": ("bad.svm", SVM + "+1 1:2 2;3\n", {"format": "svmlight"}, ["bad.svm", "31"]),
    "malformed csv line": ("bad.csv", CSV + "1,yes\n", CSV_SOURCE, ["bad.csv", "32"]),
    "text among numbers": ("bad.csv", CSV + "1,x7,yes\n", CSV_SOURCE, ["bad.csv", "32", "b"]),
    "nan, svmlight": ("nan.svm", SVM + "+1 1:nan\n", {"format": "svmlight"}, ["nan.svm", "31"]),
    "infinite, svmlight": ("inf.svm", SVM + "+1 1:inf\n", {"format": "svmlight"}, ["inf.svm", "31"]),
    "nan, csv": ("nan.csv", CSV + "1,nan,yes\n", CSV_SOURCE, ["nan.csv", "32", "b"]),
    "one class only": ("one.svm", "+1 1:1\n+1 1:2\n", {"format": "svmlight"}, ["one.svm", "class"]),
    "label not in data": ("ok.csv", CSV, {**CSV_SOURCE, "label": "lable"}, ["lable", "label"]),
    "class not in data": ("ok.csv", CSV, {**CSV_SOURCE, "positive": "yess"}, ["yess"]),
    "not a csv at all": ("ok.csv", "\x00\x01\x02", CSV_SOURCE, ["ok.csv"]),
    "truncated gzip": ("bad.svm.gz", "\x1f\x8b", {"format": "svmlight"}, ["bad.svm.gz"]),
}
SETTINGS: dict[str, list[str]] = {  # what the message must name
    "modle.lam=1": ["modle", "Did you mean 'model'?"],
    "data.tets.fraction=0.2": ["data", "tets", "Did you mean 'test'?"],
    "cluster={kind: local, worker: 2}": ["cluster", "Did you mean 'workers'?"],
    "cluster=loca": ["Did you mean 'local'?"],
    "model.estimator=PairwiseHinge": ["estimator", "Did you mean 'PairwiseHingeClassifier'?"],
    "model.solver=all-pair": ["solver", "all-pairs"],
    "model.lamb=1": ["lamb", "Did you mean 'lam'?"],
    "model.lam=-1": ["lam", "-1"],
    "model.lam=much": ["model.lam", "much"],
    "model.lam=1" + "0" * 400: ["model.lam must be a number"],
    "model.lam=true": ["`lam` must be a number; got true"],
    "model.lam=.inf": ["lam"],
    "model.lam=.nan": ["lam"],
    "model.lam.x=1": ["has no keys below it"],
    "model.lam=!!bool x": ["not valid YAML: KeyError"],
    "model.lam": ["key=value"],
    "=1": ["`key=value` is expected"],
    "model.max_passes=1e400": ["max_passes"],
    "model.random_state=-1": ["random_state must be an integer of at least 0"],
    "data.name=a9b": ["data", "a9b", "Did you mean 'a9a'?"],
    "data.test.fraction=1.5": ["data.test.fraction", "1.5"],
    "data.test={fraction: 0.2, seed: true}": ["`seed` must be a number; got true"],
    "data={name: digits, split: {time: seen, fraction: 0.2}}": ["exactly one of"],
    "data={name: digits, split: {last: 0.2}}": ["exactly one of"],
    "data={name: digits, split: {fraction: 0.2, gap: 3}}": ["`gap` belongs to `time`"],
    "data={name: digits, split: {time: seen, seed: 1}}": ["`seed` works with `fraction` only"],
    "data={name: digits, split: {fraction: 0.2}, test: {fraction: 0.2}}": [
        "`test` and its earlier name `split` are both given"
    ],
    "data={name: digits, split: null, test: {fraction: 0.3}}": ["`test` and its earlier name `split` are both given"],
    "data.log1p=[nosuch]": ["nosuch"],
    "data.log1p=[a": ["data.log1p", "YAML"],
    "data={source: {source: LICENSE, format: parquet, label: y, where: [[a, in, 3]]}}": ["must be a list of values"],
    "data={source: {source: LICENSE, format: parquet, label: y, where: [[a, '<', [3]]]}}": ["must be one value"],
    "data={source: {source: x.csv, format: csv, label: y, hashed: {a: 2147483647}}}": ["x.csv"],
    "blocks=1000000000": ["at most 65536 are possible"],
    "blocks=60000": ["`blocks` is 60000, but digits has 1437 training rows: use at most as many"],
    "blocks=1" + "0" * 400: ["at most 65536 are possible"],
    "blocks=true": ["`blocks` must be a number; got true"],
    "operating_point={}": ["operating_point"],
    "operating_point=much": ["operating_point must be a mapping with keys such as fpr, alerts", "got 'much'"],
    "cluster={kind: kubernetes, image: i, scratch: s, workers: few}": [
        "workers must be a whole number or a mapping with keys such as minimum, maximum; got 'few'"
    ],
    "data={source: {source: LICENSE, format: csv, label: y, rows: many}}": ["rows must be a whole number; got 'many'"],
    "operating_point={fpr: 0.1, recall: 0.5}": ["operating_point"],
    "operating_point={fpr: 2}": ["operating_point"],
    "operating_point={fprs: 0.1}": ["operating_point"],
    "operating_point={cost: {miss: 2}}": ["operating_point"],
    "operating_point={cost: {false_positive: 0, miss: 2}}": ["operating_point"],
    "operating_point={recall: 0.5, cost: {false_positive: 1, miss: 2}}": ["operating_point"],
    "operating_point={alerts: 5, per: week}": ["per"],
    "operating_point={alerts: 5}": ["give its unit by `per`"],
    "operating_point={fpr: 0.1, per: day}": ["`per` is the unit"],
    "operating_point={cost: {false_positive: 1, miss: 2}, confidence: 0.9}": ["not for cost"],
    "operating_point={alerts: 5, per: day}": ["column of dates"],
    "model.features={map: auto, metric: nonsense}": [
        "metric of `features: auto`: 'nonsense'",
        "group_auc",
        "group_ndcg",
    ],
    "model.features={map: auto, metric: g_mean}": ["unknown metric of `features: auto`: 'g_mean'"],
    "model.features={map: auto, k: 5}": ["unknown metric of `features: auto`: None"],
    "model.features={map: auto, metric: ndcg}": ["metric 'ndcg' needs k"],
    "model.features={map: auto, metric: group_ndcg, bins: 5}": ["unknown option of `features: auto`: 'bins'"],
    "model.features={map: auto, metric: ndcg, k: ten}": ["k must be a number above 0 and finite; got 'ten'"],
    "model.features={map: auto, metric: group_ndcg, k: -1}": ["k must be a number above 0"],
    "shapes.compare_free=true": ["compares with a fit without `monotone`"],
    "shapes.halves=2": ["`features` is None: use `features: bins`"],
    "shapes.halves=1": ["halves"],
    "shapes.thirds=3": ["thirds"],
    "data={source: {source: ., format: shards}, direct: true}": ["shards are always read directly: leave `direct` out"],
    "data={source: {source: nosuch.csv, format: csv, label: y}, direct: true}": ["no such file"],
    "data={source: {source: irs, format: embedded}, direct: true}": ["irs"],
    "s3={profile: a, block: secret/b}": ["`profile` and `block` are both given"],
    "s3.block=mine": ["s3.block must be aws-credentials/NAME or secret/NAME"],
    "s3.secret=x": ["s3", "secret"],
    "cluster={kind: none, n_jobs: 0}": ["n_jobs must be an integer other than 0"],
    "cluster={kind: local, memory_limit: lots}": ["memory_limit"],
    "cluster={kind: local, memory_limit: -1GB}": ["memory_limit"],
    "cluster={kind: address, address: 'tcp://[', scratch: x}": ["address"],
    "cluster={kind: address, address: 'tcp://host:port', scratch: x}": ["address"],
    "name=../../etc": ["name must be a name of letters"],
    "name=": ["name"],
}


def bomb() -> str:
    """Return YAML whose aliases stand for 10 ** 16 values."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{two}: &{two} [{', '.join([f'*{level}'] * 10)}]" for level, two in itertools.pairwise(LEVELS)]
    return "\n".join([*lines, "name: *p", "data: *p"])


FILES: dict[str, tuple[str | bytes, list[str]]] = {
    "a bomb of aliases": (bomb(), ["more than 100000 values with its aliases written out"]),
    "an alias in itself": ("name: c\ndata: &x {source: *x}", ["with its aliases written out"]),
    "a list in itself": ("name: &x [*x]\ndata: {name: digits}", ["with its aliases written out"]),
    "thousands of brackets": ("name: " + "[" * 5000, ["not valid YAML"]),
    "values that are deep": ("name: c\ndata: " + "{a: " * 200 + "1" + "}" * 200, ["or more than 50 levels"]),
    "a number that is none": ("name: c\nblocks: !!int x\ndata: {name: digits}", ["not valid YAML: ValueError"]),
    "a date that is none": ("name: c\nblocks: !!timestamp x\ndata: {name: digits}", ["not valid YAML: AttributeError"]),
    "a day that is none": ("name: c\nblocks: 2024-02-31\ndata: {name: digits}", ["not valid YAML: ValueError"]),
    "a truth that is none": ("name: c\nblocks: !!bool x\ndata: {name: digits}", ["not valid YAML: KeyError"]),
    "a date": ("name: 2024-01-01\ndata: {name: digits}", ["name must be a string"]),
    "an object of Python": ("name: !!python/object:os.system x", ["could not determine a constructor"]),
    "a key that is a list": ("? [1, 2]\n: 3\nname: c", ["not valid YAML"]),
    "megabytes": (
        "name: c\nmodel: {estimator: " + "k" * 5_000_000 + "}\ndata: {name: digits}",
        ["a configuration has at most 4194304 bytes"],
    ),
    "no UTF-8": (b"name: \xff", ["cannot read"]),
    "a NUL": ("name: \x00", ["not valid YAML"]),
    "nothing": ("", ["is empty", "lines of the form `key: value`"]),
    "a list": ("- a\n", ["lines of the form `key: value`"]),
    "a text": ("words", ["lines of the form `key: value`"]),
    "a key twice": ("name: a\nname: b\n", ["'name' is given twice", "line 2"]),
    "a bracket": ("name: [a\n", ["line 2", "YAML"]),
    "no data": ("name: a\n", ["data"]),
    "a name with a slash": ("name: a/b\ndata: {name: digits}\n", ["name", "a/b"]),
    "data without a key": ("name: a\ndata: {}\n", ["data", "name", "source"]),
}


def said_of(output: Path, *args: object) -> str:
    """Run `aucdist train`, check what all bad input has in common, and return the message."""
    message = refused("train", *args, "--output", output, "--json")
    assert sum(1 + len(line) // 100 for line in message.splitlines()) <= 24  # one screen
    assert not output.exists()
    return message


def write_config(folder: Path, source: dict[str, object]) -> Path:
    config = {"name": "bad", "data": {"source": source}, "model": {"lam": 0.01, "tol": 0.05}}
    path = folder / "bad.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.parametrize("case", DATA)
def test_bad_data(case: str, tmp_path: Path) -> None:
    name, content, source, named = DATA[case]
    if content is not None:
        (tmp_path / name).write_text(content, encoding="latin-1")
    message = said_of(tmp_path / "runs", write_config(tmp_path, {"source": str(tmp_path / name), **source}))
    assert all(text in message for text in named), message


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting[:40])
def test_a_bad_setting(setting: str, tmp_path: Path) -> None:
    message = said_of(tmp_path / "runs", "digits", *sets("cluster=none", setting))
    assert all(text in message for text in SETTINGS[setting]), message


@pytest.mark.parametrize("case", FILES)
def test_a_bad_configuration_file(case: str, tmp_path: Path) -> None:
    text, named = FILES[case]
    path = tmp_path / "mine.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    message = said_of(tmp_path / "runs", path)
    assert all(part in message for part in ["mine.yaml", *named]), message


def test_no_such_configuration(tmp_path: Path) -> None:
    assert "Did you mean 'digits'?" in said_of(tmp_path / "runs", "digit")
    assert "mine.yaml" in said_of(tmp_path / "runs", tmp_path / "mine.yaml")


def test_unwritable_output_is_found_before_the_data_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    config = write_config(tmp_path, {"source": str(tmp_path / "none.svm"), "format": "svmlight"})
    message = said_of(tmp_path / "file" / "runs", config)
    assert "cannot write to" in message
    assert "none.svm" not in message


def test_an_s3_server_that_is_not_there_is_named_for_data_and_output(tmp_path, monkeypatch):
    point_to(monkeypatch, "http://127.0.0.1:9", *MOCK)
    monkeypatch.setattr(faults, "RETRY_SECONDS", 0.0)
    config = write_config(tmp_path, {"source": "s3://bucket/data.svm", "format": "svmlight"})
    with new_connections():
        messages = said_of(tmp_path / "runs", config), refused("train", "digits", "--output", "s3://bucket/runs")
    assert "s3://bucket/data.svm" in messages[0]
    assert "cannot write s3://bucket/runs" in messages[1]
    assert MOCK[1] not in "".join(messages)


def test_prefix_that_matches_nothing(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"source": "memory://nothing/here-*.svm", "format": "svmlight"})
    assert "here-*.svm" in said_of(tmp_path / "runs", config)


def test_the_traceback_is_shown_on_demand() -> None:
    stderr = run("train", "digits", *sets("data.name=nosuch"), "--debug", code=2)[1]
    assert "Traceback" in stderr
    assert "nosuch" in stderr.splitlines()[-1]


LINES = {  # what the message must name
    "train": "error: the argument 'CONFIG' is missing: add it (Usage: aucdist train [OPTIONS] CONFIG)",
    "train digits --nosuch": "there is no option '--nosuch'. A key of the configuration is given with --set, as in",
    "train digits a b": "error: the command takes fewer arguments: leave out (a b), quote a value with blanks, or "
    "name one where a pattern such as trained/* matches several",
    "train digits --output": "error: the option '--output' requires an argument",
    "train digits --set": "error: the option '--set' requires an argument",
    "nosuch": "unknown command 'nosuch'. Allowed: init, data,",
    "trian": "unknown command 'trian'. Did you mean 'train'?",
    "cv digits --set cluster=none --set folds.number=200": "139 positive rows cannot be divided into 200 folds",
    "cv digits --set cluster=none --set nested=130": "111 positive rows cannot be divided into 130 folds",
    "cv digits --set cluster=none --set folds.groups=pixel_0_9": "unknown column 'pixel_0_9'",
    "cv digits --set cluster=none --set folds.groups=pixel_0_1": "groups straddle training and test rows",
    "cv digits --set 'data={name: digits, log1p: [nothing]}' --set cluster=none": "unknown feature in `log1p`: 'nothing'",
    "init / --label label": "/ is the root folder, not a data set: name a file, or a folder of files of one kind",
    "init ftp://nowhere.invalid/rows.csv --label label": "cannot be reached (gaierror); check the address and the network",
    "init sqlite:///x.db --label label": "use a path, file://, s3:// or https://. A database is the `source` in a YAML file",
    "init rows.csv --label label --output rows.csv/a.yaml": "one of its folders is a file; name another place",
    "init rows.csv --label label --time label": "unknown column in `--time`: 'label'",
    "data preview cells.csv --set label=label": "It seems to hold several columns: name their separator",
    "cv rows.csv": "If it is a file of data, `aucdist init` describes it in such a file",
    "score cells.json rows.csv out": "cells.json is not a scorecard, and no other JSON is read as a model",
    "explain rows.csv rows.csv": "no model can be read from rows.csv",
    "explain {run} cells.csv": "which the model needs; it has: a;b;label. ",
    "threshold . --fpr 0.1": ". is not the folder of a run: cannot read ./metrics.json: no such file or folder",
    "shard nosuch out": "unknown file or data set 'nosuch'",
    "shard no/such.csv out": "cannot read no/such.csv: no such file or folder",
    "shard rows out": "format 'csv' needs `label`",
    "shard rows.csv out": "needs `label`",
    "shard rows.csv out --set labell=1": "unknown key 'labell'. Did you mean 'label'?",
    "shard wine out --rows-per-shard 0": "--rows-per-shard must be greater than or equal to 1; got '0'",
    "shard wine out --dtype half": "--dtype must be 'float32' or 'float64'; got 'half'",
    "shard wine out --seed -1": "--seed must be greater than or equal to 0; got '-1'",
    "shard wine out --cluster nosuch": "unknown configuration 'nosuch'",
    "shard wine rows.csv": "one of its folders is a file; name another place",
    "shard wine rows.csv/out": "one of its folders is a file; name another place",
    "simulate out --positive-share much": "aucdist simulate: --positive-share must be a number; got 'much'",
    "explain {run} digits --top 1.5": "--top must be a whole number; got '1.5'",
    "simulate out --rows 100000000000000000": "cannot write 100,000,000,000,000,000 rows: the disk of",
    "simulate rows.csv/out --rows 5": "one of its folders is a file; name another place",
    "simulate out --positive-share 2": "--positive-share must be less than 1; got '2'",
    "threshold {run} --cost x": "--cost must be a mapping with keys such as false_positive, miss; got 'x'",
    "threshold {run} --cost '{miss: x, false_positive: 1}'": "--cost.miss must be a number or 'cost_column'; got 'x'",
    "threshold {run} --alerts 3 --per fortnight": "--per must be `day` or a number of rows, as in '1000 rows'; got",
    "threshold {run} --fpr 0.1 --per day": "--per is the unit of --alerts",
    "score none digits out": "no model can be read",
    "score rows.yaml digits out": "rows.yaml is a configuration and not a model: train it by `aucdist train",
    "explain rows.yaml digits": "rows.yaml is a configuration and not a model",
    "export rows.yaml --output out --to sql": "rows.yaml is a configuration and not a model",
    "score {run} wine out": "its features are not those of the training data",
    "score {run} nosuch out": "unknown file or data set 'nosuch'",
    "score {run} digits {run}": "is not empty",
    "score {run} digits rows.csv/out": "cannot write",
    "export {run} --output out --to pmml": "unknown target 'pmml'. Allowed: onnx, sql, json",
    "export {run} --output out --to json --table t": "belongs to sql",
    "export {run} --output out --to onnx --id t": "belongs to sql",
    "export {run} --output out --to json --rows 5": "belongs to scorecard",
    "export {run} --output out --to scorecard --base-points 5": "go with --points-to-double-odds",
    "export {run} --output out --to sql --table 'a\"b'": "is not the name of a table",
    "export {run} --output out --to sql --id a --id a": "column 'a' is named twice",
    "export {run} --output rows.csv/out --to json": "cannot write",
    "export . --output out --to sql": "no model can be read",
    "export . --output out": "the option '--to' is missing: add it",
    "explain {run} wine": "its features are not those of the training data",
    "explain . wine": "no model can be read",
    "explain {run} digits --output table.txt": "Allowed: .csv, .parquet",
    "explain {run} digits --copy nosuch": "is no table with a column 'nosuch'",
    "explain {run} digits --rows 0": "--rows must be greater than or equal to 1; got '0'",
    "promote {run} rows.csv": "digests.npy: one of its folders is a file; name another place",
    "promote {run} rows.csv/store": "digests.npy: one of its folders is a file; name another place",
    "promote none models:/digits": "MLFLOW_TRACKING_URI does not say where",
    "promote none models:/digits/3": "models:/digits/3 names no registered model of MLflow: give models:/NAME",
    "promote none models:/": "names no registered model",
    "promote none models:/digits@": "names no registered model",
    "promote none models:/digits --keep 3": "--keep is for a folder or bucket",
    "models none": "is not a model store",
    "rollback none": "is not a model store",
    "reproduce 0000": "unknown paper '0000'. Did you mean '000'",
}


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    settings = sets("cluster=none", "model.tol=0.5", "data.test=null")
    return str(result_of("train", "digits", *settings, "--output", tmp_path_factory.mktemp("runs"))["run"])


@pytest.mark.parametrize("line", LINES)
def test_a_bad_command_line(line: str, digits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    Path("rows.csv").write_text(CSV)
    Path("rows.yaml").write_text("data: digits\n")
    Path("rows").write_bytes(bytes(range(1, 32)))
    Path("cells.csv").write_text(CSV.replace(",", ";"))
    Path("cells.json").write_text('{"format": "aucdist model", "version": 1}')
    assert LINES[line] in refused(*shlex.split(line.replace("{run}", digits)))
    if not line.startswith("score"):  # which notes in its output what it was asked for
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "cells.csv",
            "cells.json",
            "rows",
            "rows.csv",
            "rows.yaml",
        ]


def test_data_are_named_by_patterns_and_by_names_with_signs_of_urls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").mkdir()
    for name in ("p/1.csv", "p/2.csv"):
        (tmp_path / name).write_text(CSV)
    (tmp_path / "a#b?c.tsv").write_text(CSV.replace(",", "\t"))
    assert result_of("init", "p/*.csv", "--label", "label", "--output", "p.yaml")["config"] == "p.yaml"
    assert result_of("init", "a#b?c.tsv", "--label", "label")["config"] == "a#b?c.yaml"
    assert "name of the data is empty" in refused("init", "", "--label", "label")
    assert "nothing matches" in refused("init", "p/*.tsv", "--label", "label")


def test_what_a_command_does_not_name_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "a.csv"
    data.write_text(CSV)
    assert "local file" in refused("init", "a.csv", "--label", "label", "--output", "s3://b/a.yaml")
    run("train", "a.csv", "--label", "label")
    model = next((tmp_path / "runs").iterdir())
    assert "is a file of the data" in refused("explain", model, "a.csv", "--output", "./a.csv")
    assert data.read_text() == CSV
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "runs"]
    long = f"{'n' * 240}.csv"
    (tmp_path / long).write_text(CSV)
    assert "File name too long" in refused("train", long, "--label", "label")
