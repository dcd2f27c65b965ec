"""`aucdist init` on svmlight and KEEL files: a YAML that preview and train take."""

import bz2
import gzip
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.command_line import run

from aucdist.data.formats.registry import keys_by_content


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


@pytest.mark.parametrize(
    ("name", "data", "form", "positive", "scale", "said"),
    [
        ("a.txt", svmlight(), "svmlight", "1", "standard", "3 features, 100.00% of their values are not 0: rows are dense"),
        ("a.svm", svmlight(), "svmlight", "1", "standard", "rows are dense"),
        ("a.libsvm", b"# made\n" + svmlight(), "svmlight", "1", "standard", "rows are dense"),
        ("a", svmlight(), "svmlight", "1", "standard", "rows are dense"),
        ("a.txt.gz", gzip.compress(svmlight(60, 40, 0.05)), "svmlight", "1", "maxabs", "40 features"),
        ("a.txt.bz2", bz2.compress(svmlight(60, 40, 0.05)), "svmlight", "1", "maxabs", "rows are sparse"),
        ("a.dat", KEEL, "keel", "bad", "standard", "2 columns, 1 of texts: 3 features"),
        ("a.dat", KEEL.replace(b"1.5", b"<null>"), "keel", "bad", "standard", "rows without: width 6"),
    ],
)  # fmt: skip
def test_yaml_is_taken_by_preview_and_train(
    name: str,
    data: bytes,
    form: str,
    positive: str,
    scale: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(data)
    stdout, _ = run("init", name)
    assert stdout.startswith("a.yaml: 60 rows\nnext: aucdist data preview a.yaml --html a.html\n")
    assert stdout.splitlines()[-1].startswith(f"positive class {positive!r} was guessed: it is the rarer class")
    text = Path("a.yaml").read_text(encoding="utf-8")
    assert said in text
    written = yaml.safe_load(text)["data"]
    assert (written["source"]["source"], written["source"]["format"]) == (name, form)
    assert (written["source"]["positive"], written["scale"]) == (positive, scale)
    assert "60 rows" in run("data", "preview", "a.yaml")[0]
    run("train", "a.yaml", "--set", "model.tol=0.1")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "a,b\n1,2\n", "needs `label`"),
        ("a.txt", "hello there\n", "needs `label`"),
        ("a.txt", "", "a.txt"),
        ("a.svm", "\n", "a.svm is empty"),
        ("a.svm", "".join(f"{i} 1:1\n" for i in range(30)), "the labels have 30 different values"),
        ("a.svm", "1 1:1\n1 1:2\n", "one class only"),
    ],
)
def test_what_cannot_be_described(
    name: str, text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    assert message in run("init", name, code=2)[1]
    assert not Path("a.yaml").exists()


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
    assert keys_by_content(f"\n{line}\n".encode(), "f")["format"] == form
