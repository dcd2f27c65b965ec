"""`aucdist export`: files of a run's model, and the page that shows them."""

from pathlib import Path

import pytest
from support.command_line import result_of, run
from support.export_models import PAGE
from support.printed import differences, run_page, script

from aucdist.export import to_json, to_sql
from aucdist.model import load_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the commands of the page have run; what needs a package that is missing has not."""
    folder = tmp_path_factory.mktemp("elsewhere")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert len(run_page(PAGE)) >= 4
    return folder


@pytest.fixture(scope="module")
def made(folder: Path) -> Path:
    (made,) = (folder / "trained").iterdir()
    return made


def test_code_of_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("onnx", "onnxruntime", "duckdb"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(folder)
    shown = PAGE.read_text(encoding="utf-8")
    assert differences(script("guides").with_outputs("how-to/exporting"), shown) == []
    assert shown.count("agrees: True\n") == 2


def test_files_are_those_of_the_functions(folder: Path, made: Path) -> None:
    model = load_model(f"{made}/model")
    assert (folder / "clicks.sql").read_text() == to_sql(model, table="clicks", ids=["id"])
    assert (folder / "clicks.json").read_text() == to_json(model)
    assert not [file.name for file in folder.iterdir() if file.suffix == ".part"]


def test_a_file_is_replaced_only_if_asked(made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = result_of("export", f"{made}/model", "--to", "json")
    output = Path(result["output"])
    assert output.name == f"{made.name}.json"
    assert result["columns"] == ["age", "pages", "browser", "seen"]
    assert result["bytes"] == len(output.read_bytes())
    output.write_text("mine")
    assert "already exists" in run("export", made, "--to", "json", code=2)[1]
    assert output.read_text() == "mine"
    assert run("export", made, "--to", "json", "--force")[0] == f"{output}: 4 columns, {result['bytes']:,} bytes\n"
    assert output.read_text() == to_json(load_model(f"{made}/model"))
    for here, model in ((made, "."), (made, "model"), (made / "model", ".")):
        monkeypatch.chdir(here)  # where `model.json` is the name of a file of the model
        assert result_of("export", model, "--to", "json")["output"] == f"{made.name}.json"
        (here / f"{made.name}.json").unlink()
