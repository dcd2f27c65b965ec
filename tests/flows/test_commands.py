"""The table of commands in `flows/commands.toml`: deployments, configuration reference and documentation agree with it."""

import posixpath
import shlex
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, get_type_hints

import click
import pytest
import yaml
from pydantic import BaseModel, Field
from support.printed import script

from aucdist.errors import InputError
from flows.cli import COMMANDS, app
from flows.command import Command, config_from_options, parameters
from flows.config.loading import Cli, Strict
from flows.up import deployments_file

ROOT = Path(__file__).resolve().parents[2]

ids = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


@ids
def test_what_a_row_names_is_there_and_every_option_has_a_help(command: Command) -> None:
    assert issubclass(resolve_name(command.model), BaseModel)
    assert all(callable(resolve_name(path)) for path in (command.function, command.lines, command.after) if path)
    assert command.as_click().name == command.name.rpartition(" ")[2]
    assert all(getattr(parameter, "help", None) for parameter in command.as_click().params)
    pytest.importorskip("prefect")
    if command.flow:
        flow = resolve_name(command.flow)
        form, model = flow.parameters.model_dump(), get_type_hints(flow.fn)["config"]
        assert form["required"] == ["config"]  # Prefect makes a form of it
        assert set(form["definitions"][model.__name__]["properties"]) == set(model.model_fields)


def test_every_summary_fits_on_a_line_of_a_terminal() -> None:
    assert {command.name: command.short for command in COMMANDS if len(command.short) > 45} == {}
    shown = app.get_help(click.Context(app, terminal_width=80)).splitlines()[1:]
    assert not [line for line in shown if line.endswith("...")]


def test_help_names_keys_as_options() -> None:
    class Model(Strict):
        alerts: Annotated[int, Cli()] = Field(description="Alerts by `per`, or by `day`")
        per: Annotated[str, Cli(flag="--of")] = Field(description="The unit of `alerts`")

    helps = [getattr(parameter, "help", "") for parameter in parameters(Model)]
    assert helps == ["Alerts by --of, or by `day`", "The unit of --alerts"]


def test_a_model_becomes_options_and_options_become_the_model() -> None:
    class Model(Strict):
        last: Annotated[list[str], Cli(position=2)] = Field(default=[], description="The rest")
        first: Annotated[str, Cli(position=1, metavar="URL")] = Field(description="A folder")
        condition: Annotated[str, Cli(flag="--if")] = Field(default="always", description="When")
        force: bool = Field(default=False, description="Replace")
        rows: Annotated[int | None, Cli(metavar="N")] = Field(default=None, ge=1, description="Rows")
        hidden: Annotated[str, Cli(hidden=True)] = "only in the flow"

    options = parameters(Model)
    assert [p.name for p in options] == ["first", "last", "condition", "force", "rows"]
    command = click.Command("x", params=options)
    parsed = command.make_context("x", ["a", "b", "c", "--if", "better"]).params
    expected = Model(first="a", last=["b", "c"], condition="better")
    assert config_from_options(Model, "aucdist x", parsed) == expected
    defaults = command.make_context("x", ["a"]).params
    assert config_from_options(Model, "aucdist x", defaults) == Model(first="a")
    with pytest.raises(InputError, match="aucdist x: --rows"):
        config_from_options(Model, "aucdist x", {**defaults, "rows": 0})


@pytest.mark.parametrize("pool", ["local", "kubernetes"])
def test_every_flow_has_a_deployment_on_each_pool(pool: str) -> None:
    deployments = yaml.safe_load(deployments_file().read_text(encoding="utf-8"))["deployments"]
    entrypoints = [entry["entrypoint"] for entry in deployments if entry["work_pool"]["name"] == pool]
    assert sorted(entrypoints) == sorted(command.flow.replace(":", ".") for command in COMMANDS if command.flow)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.flow], ids=lambda command: command.name)
def test_the_flow_is_called_where_an_api_is_configured(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    monkeypatch.setattr(
        "flows.command.resolve_name", lambda path: lambda *args: called.append((path, args[0])) or {"run": path}
    )
    monkeypatch.setattr("flows.command.config_from_options", lambda model, where, options: "a configuration")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    command.run(as_json=True, debug=True)
    monkeypatch.setenv("PREFECT_API_URL", "")
    command.run(as_json=True, debug=True)
    assert called == [(command.flow, "a configuration"), (command.function, "a configuration")]


def test_the_page_of_each_command_shows_it() -> None:
    for command in COMMANDS:
        path = posixpath.normpath(f"how-to/{command.page}.md")
        page = (ROOT / "docs" / "pages" / path).read_text(encoding="utf-8")
        assert f"aucdist {command.name.partition(' ')[0]}" in page


@ids
def test_the_configuration_reference_has_its_keys(command: Command) -> None:
    reference = script("configuration")
    model, use = reference.model_of(command), reference.use_of(command)
    assert f"`aucdist {command.name}`" in use
    assert command.flow == "" or f"`{command.flow.rpartition(':')[2].replace('_', '-')}`" in use
    for inner in reference.reachable([model]):
        assert reference.description(inner), f"{inner.__name__} has no docstring"
        for name, field in inner.model_fields.items():
            assert field.description, f"{inner.__name__}.{name} has no description"
            assert reference.type_text(field.annotation, reference.reachable([model]))
    example = reference.EXAMPLES[command.name]
    if "\n" in example:
        model.model_validate(yaml.safe_load(example))
    else:
        words = shlex.split(example)
        assert words[: 1 + len(command.name.split())] == ["aucdist", *command.name.split()]
        command.as_click().make_context(command.name, words[1 + len(command.name.split()) :])
