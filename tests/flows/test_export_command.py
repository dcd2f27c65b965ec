"""`aucdist export`: files of a run's model, and the page that shows them."""

import contextlib
import json
import re
import shlex
from pathlib import Path

import pytest
from support.command_line import run
from support.export_models import PAGE
from support.printed import differences, script

from aucdist.export import to_json, to_sql
from aucdist.model import load_model

MADE_BY = re.compile(r"<<'(PYTHON|YAML)'\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the commands of the page have run; what needs a package that is missing has not."""
    folder = tmp_path_factory.mktemp("elsewhere")
    text = PAGE.read_text(encoding="utf-8")
    files = dict(MADE_BY.findall(text))
    commands = re.findall(r"^aucdist (.*)$", text, re.MULTILINE)
    assert len(commands) == 5
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(files["PYTHON"], PAGE.name, "exec"), {})
        Path("clicks.yaml").write_text(files["YAML"], encoding="utf-8")
        for command in commands:
            words = [str(next(iter(folder.glob(word)), word)) if "*" in word else word for word in shlex.split(command)]
            if "onnx" in words:
                with contextlib.suppress(ModuleNotFoundError):
                    import onnx  # noqa: F401

                    run(*words)
                continue
            run(*words)
    return folder


def test_code_of_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("onnx", "onnxruntime", "duckdb"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(folder)
    shown = PAGE.read_text(encoding="utf-8")
    assert differences(script("guides").with_outputs("how-to/take-elsewhere"), shown) == []
    assert shown.count("agrees: True\n") == 2


def test_files_are_those_of_the_functions(folder: Path) -> None:
    (made,) = (folder / "trained").iterdir()
    model = load_model(f"{made}/model")
    assert (folder / "clicks.sql").read_text() == to_sql(model, table="clicks", ids=["id"])
    assert (folder / "clicks.json").read_text() == to_json(model)
    assert not [file.name for file in folder.iterdir() if file.suffix == ".part"]


def test_a_file_is_replaced_only_if_asked(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (made,) = (folder / "trained").iterdir()
    found = json.loads(run("export", f"{made}/model", "--to", "json", "--json")[0])
    output = Path(found["output"])
    assert output.name == f"{made.name}.json"
    assert found["columns"] == ["age", "pages", "browser", "seen"]
    assert found["bytes"] == len(output.read_bytes())
    output.write_text("mine")
    assert "is there already" in run("export", made, "--to", "json", code=2)[1]
    assert output.read_text() == "mine"
    assert run("export", made, "--to", "json", "--force")[0] == f"{output}: 4 columns, {found['bytes']:,} bytes\n"
    assert json.loads(output.read_text())["format"] == "aucdist model"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--to", "pmml"), "unknown target 'pmml'. Allowed: onnx, sql, json"),
        (("--to", "json", "--table", "t"), "belong to sql"),
        (("--to", "onnx", "--id", "t"), "belong to sql"),
        (("--to", "sql", "--table", 'a"b'), "is not the name of a table"),
        (("--to", "sql", "--id", "a", "--id", "a"), "column 'a' is named twice"),
        (("--to", "json", "--output", "{made}/metrics.json/x"), "cannot write"),
    ],
)
def test_wrong_input(folder: Path, args: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (made,) = (folder / "trained").iterdir()
    words = [arg.format(made=made) for arg in args]
    error = run("export", made, *words, *(() if "--output" in words else ("--output", tmp_path / "x")), code=2)[1]
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "x").exists()


def test_no_run_there(tmp_path: Path) -> None:
    assert "no model can be read" in run("export", tmp_path, "--to", "sql", code=2)[1]
    assert "Missing option '--to'" in run("export", tmp_path, code=2)[1]
