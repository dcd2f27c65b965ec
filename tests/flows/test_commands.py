"""The table of commands in `flows.cli`: folders, deployments, configuration reference and documentation agree with it."""

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from flows.cli import COMMANDS
from flows.command import Command
from flows.up.run import deployments_file

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "pages"

ids = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


def defined_in(command: Command, module: str) -> set[str]:
    """Return the names of the functions and classes in a module of a command's folder, without importing it."""
    tree = ast.parse((ROOT / "flows" / command.folder / f"{module}.py").read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_every_folder_with_a_command_is_in_the_table() -> None:
    folders = {file.parent.name for file in (ROOT / "flows").glob("*/command.py")}
    assert folders == {command.folder for command in COMMANDS}
    assert len(COMMANDS) == len(folders)


@ids
def test_the_names_of_a_row_are_defined(command: Command) -> None:
    for module, name in (("run", command.function), ("flow", command.flow), ("config", command.config)):
        assert name == "" or name in defined_in(command, module)
    assert isinstance(command.main, typer.Typer) or command.main.__module__ == f"flows.{command.folder}.command"
    assert (ROOT / "flows" / command.folder / "flow.py").is_file() == bool(command.flow)


@pytest.mark.parametrize("pool", ["local", "kubernetes"])
def test_every_flow_has_a_deployment_on_each_pool(pool: str) -> None:
    deployments = yaml.safe_load(deployments_file().read_text(encoding="utf-8"))["deployments"]
    entrypoints = [entry["entrypoint"] for entry in deployments if entry["work_pool"]["name"] == pool]
    assert sorted(entrypoints) == sorted(command.entrypoint for command in COMMANDS if command.flow)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.flow], ids=lambda command: command.name)
def test_the_flow_is_called_where_an_api_is_configured(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []

    def load(self: Command, module: str, attribute: str) -> Any:
        return lambda *args: called.append((module, attribute, args[0])) or {"run": module}

    monkeypatch.setattr(Command, "load", load)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    assert command.run("a configuration", debug=True) == {"run": "flow"}
    monkeypatch.setenv("PREFECT_API_URL", "")
    assert command.run("a configuration", debug=True) == {"run": "run"}
    assert called == [("flow", command.flow, "a configuration"), ("run", command.function, "a configuration")]


def test_the_how_to_page_of_each_command_is_in_the_menu() -> None:
    menu = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = {page for group in menu for entry in next(iter(group.values())) for page in entry.values()}
    assert pages >= {f"how-to/{command.page}.md" for command in COMMANDS}


@ids
def test_the_page_of_a_command_shows_it(command: Command) -> None:
    assert f"aucdist {command.name}" in (PAGES / "how-to" / f"{command.page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "command", [command for command in COMMANDS if command.config], ids=lambda command: command.name
)
def test_the_configuration_reference_has_its_keys(command: Command) -> None:
    spec = importlib.util.spec_from_file_location("configuration", ROOT / "docs" / "configuration.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    model = command.load("config", command.config)
    use = reference.use_of(command)
    assert f"`aucdist {command.name}`" in use
    assert f"`{command.flow.replace('_', '-')}`" in use
    for inner in reference.reachable([model]):
        assert reference.description(inner), f"{inner.__name__} has no docstring"
        for field in inner.model_fields.values():
            assert reference.type_text(field.annotation, reference.reachable([model]))
