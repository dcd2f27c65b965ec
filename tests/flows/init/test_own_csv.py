"""The page "Your own CSV": its commands run as printed, from a file to scores of rows with a new category."""

import bz2
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from support.command_line import run
from support.printed import run_page

from aucdist.data.formats.registry import format_from_bytes
from aucdist.model import load_model

PAGE = Path(__file__).resolve().parents[3] / "docs" / "pages" / "how-to" / "your-own-csv.md"


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder in which the commands of the page have run, and what each of them printed."""
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return folder, {" ".join(command.split()[:2]): said for command, said in run_page(PAGE)}


def test_init_says_what_each_column_holds(printed: tuple[Path, dict[str, str]]) -> None:
    folder, said = printed
    config = yaml.safe_load((folder / "clicks.yaml").read_text())
    source = config["data"]["source"]
    assert source == {
        "source": "clicks.csv", "format": "csv", "label": "clicked", "positive": "yes", "drop": ["id", "country"],
        "dates": {"seen": ["year", "month", "weekday", "hour", "days"]}, "categorical": ["browser"], "missing": "keep",
        "unknown": "ignore",
    }  # fmt: skip
    assert config["data"]["impute"] == "median"
    assert "2,500 rows\nnext: " in said["init clicks.csv"]


def test_preview_says_what_becomes_of_each_column(printed: tuple[Path, dict[str, str]]) -> None:
    text = printed[1]["data preview"]
    assert re.search(r"^seen +dates +5: seen\.year \(2025 to 2026\), seen\.month \(1 to 12\)", text, re.MULTILINE)
    assert re.search(r"^age +number +1: age \(.*, \d+ missing\)$", text, re.MULTILINE)
    assert re.search(r"^browser +categories +3: browser=chrome \([\d,]+ rows\), browser=firefox", text, re.MULTILINE)
    assert "not read: id, country\n9 features, then impute: median, then scale: standard" in text


def test_scores_of_new_rows_are_those_of_the_model(printed: tuple[Path, dict[str, str]]) -> None:
    folder, said = printed
    new = pd.read_csv(folder / "new-clicks.csv", parse_dates=["seen"])
    age_missing = int(new["age"].isna().sum())
    assert said["score trained/*"].endswith(
        f"missing values: age {age_missing}\nunknown values, which no training row had: browser 1\n"
    )
    model = load_model(str(next(folder.glob("trained/*/model"))))
    # The year and the days since 1970 only grow: the time of the split is no feature.
    parts = [new["seen"].dt.month, new["seen"].dt.day_of_week, new["seen"].dt.hour, new["age"]]
    X = np.column_stack(parts + [new["browser"] == name for name in ("chrome", "firefox", "safari")]).astype(float)
    table = pd.read_parquet(folder / "scores")
    np.testing.assert_allclose(table["score"], model.decision_function(X), rtol=1e-12)
    summary = json.loads((folder / "scores" / "_scores.json").read_text())
    assert (summary["missing"], summary["unknown"]) == ({"age": age_missing}, {"browser": 1})


# ---- `aucdist init` on svmlight and KEEL files: a YAML that preview and train take ------------


def svmlight(n: int = 60, features: int = 3, share: float = 1.0) -> bytes:
    random = np.random.default_rng(0)
    lines = []
    for i in range(n):
        there = [j for j in range(features) if random.random() < share or j == i % features]
        values = " ".join(f"{j + 1}:{random.normal():.3f}" for j in there)
        lines.append(f"{'+1' if i % 4 == 0 else '-1'} {values}")
    return ("\n".join(lines) + "\n").encode()


KEEL = b"""@relation made
@attribute width real [0.0, 9.0]
@attribute colour {red, green}
@attribute Class {bad, good}
@inputs width, colour
@outputs Class
@data
""" + "".join(
    f"{i % 10}.5, {'red' if i % 3 else 'green'}, {'bad' if i % 5 == 0 else 'good'}\n" for i in range(60)
).encode()

WITH_EMPTY = (
    KEEL.replace(b"@attribute colour", b"@attribute blank real [0.0, 9.0]\n@attribute colour")
    .replace(b"@inputs width", b"@inputs width, blank")
    .replace(b".5, ", b".5, <null>, ")
)


@pytest.mark.parametrize(
    ("name", "data", "form", "positive", "scale", "said"),
    [
        ("a.txt", svmlight(), "svmlight", "1", "standard", "3 features, 100.00% of their values are not 0: rows are dense"),
        ("a.svm", svmlight(), "svmlight", "1", "standard", "rows are dense"),
        ("a.libsvm", b"# made\n" + svmlight(), "svmlight", "1", "standard", "rows are dense"),
        ("a", svmlight(), "svmlight", "1", "standard", "rows are dense"),
        ("a.txt.gz", gzip.compress(svmlight(60, 40, 0.05)), "svmlight", "1", "maxabs", "40 features"),
        ("a.txt.bz2", bz2.compress(svmlight(60, 40, 0.05)), "svmlight", "1", "maxabs", "rows are sparse"),
        ("a.dat", KEEL, "keel", "bad", "standard", "2 columns, 1 of strings"),
        ("a.dat", KEEL.replace(b"1.5", b"<null>"), "keel", "bad", "standard", "rows without: width 6"),
        ("a.dat", WITH_EMPTY, "keel", "bad", "standard", "      - blank  # no values"),
    ],
)  # fmt: skip
def test_yaml_is_taken_by_preview_and_train(name, data, form, positive, scale, said):
    Path(name).write_bytes(data)
    stdout, _ = run("init", name)
    assert "a.yaml: 60 rows\nnext: aucdist data preview a.yaml --html a.html\n" in stdout
    assert stdout.splitlines()[-1].startswith(f"{positive!r} is the positive class, because it is the rarer one")
    text = Path("a.yaml").read_text(encoding="utf-8")
    assert said in text
    written = yaml.safe_load(text)["data"]
    assert (written["source"]["source"], written["source"]["format"]) == (name, form)
    assert (written["source"]["positive"], written["scale"]) == (positive, scale)
    assert "60 rows" in run("data", "preview", "a.yaml")[0]
    run("train", "a.yaml", "--set", "model.tol=0.1")


def test_a_table_without_a_feature_says_what_was_dropped() -> None:
    Path("a.csv").write_text("y,words\n" + "".join(f"{i % 2},a text of {i}\n" for i in range(30)))
    said = run("train", "a.csv", "--label", "y", code=2)[1]
    shown = "no column is left as a feature: words: 30 different strings in 30 rows: free text, of whose words columns can be"
    assert f"{shown} made. Make columns" in said
    assert "scikit-learn's TfidfVectorizer" in said
    assert "keeps it" not in said


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("1 1:0.5 3:2", "svmlight"),
        ("-1.0 1:1e-3 # remark", "svmlight"),
        ("2 qid:7 1:1", "svmlight"),
        ("1,2,3", "csv"),
        ("1 2 3", "csv"),
        ("12:30 arrived", "csv"),
        ("1 a:b", "csv"),
    ],
)
def test_first_row_tells_svmlight(line: str, form: str) -> None:
    assert format_from_bytes(f"\n{line}\n".encode(), "f")["format"] == form
