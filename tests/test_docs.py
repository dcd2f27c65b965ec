"""What the documentation says is there: names, parameters, links, commands, configurations. Nothing is built or run."""

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click
import pytest
import yaml
from pydantic import TypeAdapter, ValidationError
from support.printed import script

from aucdist.data.sources import Source
from aucdist.errors import InputError
from flows.cli import app
from flows.config.cluster import ClusterConfig
from flows.config.loading import parse_yaml
from flows.cv.config import CvConfig
from flows.keep_current import KeepCurrentConfig
from flows.train.config import TrainConfig

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "pages"
TEXTS = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *PAGES.rglob("*.md"), *(ROOT / "infra").glob("*.md")])
RECORDS = {"internals/design-notes.md", "internals/measurements.md", "internals/scale.md"}
"""Dated records: they stay in the repository and are not on the site."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INDENTED = re.compile(r"^(?:    |\$ )(aucdist .*)$", re.MULTILINE)
PACKAGES = ("aucdist", "aucdist.estimators", "aucdist.metrics", "aucdist.sampling")
REFERENCE_WRITER = script("reference")
WRITTEN: dict[str, Path] = REFERENCE_WRITER.places()
"""The page of each object whose signature and docstring are on it."""
PLACEHOLDER = re.compile(r"\b(RUN|N|KEY=VALUE|URL|FILE|NAME)\b|\.\.\.")


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_links_lead_somewhere() -> None:
    targets = {
        (file, target.partition("#")[0])
        for file in TEXTS
        for target in LINK.findall(FENCE.sub("", file.read_text(encoding="utf-8")))
        if "://" not in target and not target.startswith("#")
    }
    assert len(targets) > 100
    linked = {(name_of(file), path): (file.parent / path).resolve() for file, path in targets}
    assert [link for link, there in linked.items() if not there.exists()] == []


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page: its headings, those that it sets, and the objects whose docstrings are built into it."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", re.sub(r"<a .*?</a>", "", FENCE.sub("", text)), re.MULTILINE)
    slugs = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text)) | set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))


def test_anchors_of_links_are_on_their_pages() -> None:
    missing = []
    for file in TEXTS:
        for target in LINK.findall(FENCE.sub("", file.read_text(encoding="utf-8"))):
            path, _, anchor = target.partition("#")
            page = (file.parent / path).resolve() if path else file
            if "://" not in target and anchor and page.suffix == ".md" and anchor not in anchors_of(page):
                missing.append((name_of(file), target))
    assert missing == []


def test_the_configuration_reference_is_that_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    script("configuration").print_reference()
    page = (PAGES / "reference" / "configuration.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out == page, "python docs/configuration.py > docs/pages/reference/configuration.md"


@pytest.mark.parametrize("page", sorted({page.name for page in WRITTEN.values()}))
def test_the_reference_is_that_of_the_docstrings(page: str) -> None:
    file = PAGES / "reference" / page
    text = file.read_text(encoding="utf-8")
    assert REFERENCE_WRITER.filled(text, file) == text, "python docs/reference.py"


def test_notes_begin_with_text_and_not_with_code() -> None:
    """A note whose text begins on the line of its title is not a note, and one that is indented further is code."""
    wrong = re.compile(r"^(?:!!!|\?\?\?)(?:.*\n {5,}\S.*| \w+ \".*\" *\S.*)", re.MULTILINE)
    assert [line for file in TEXTS for line in wrong.findall(file.read_text(encoding="utf-8"))] == []


def test_a_list_that_goes_on_after_a_paragraph_begins_with_a_blank_line() -> None:
    """Without this line, the next entry is shown as text of the paragraph."""
    wrong = re.compile(r"\n\n    [^\s*].*\n(?:    .*\n)*\* .*")
    assert [line for file in TEXTS for line in wrong.findall(FENCE.sub("", file.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize("name", ["report", "report-shapes", "watch"])
def test_a_picture_has_the_words_of_its_page_today(name: str) -> None:
    pytest.importorskip("PIL", reason="needs Pillow, which comes with matplotlib")
    gone = script("pictures").gone(name)
    assert gone == [], f"draw the picture again: python docs/pictures.py {name}"


def commands() -> Iterator[tuple[str, str, bool]]:
    """Yield a page and a command line, and whether it must be whole: those in code must, those in sentences need not."""
    for file in TEXTS:
        text = file.read_text(encoding="utf-8")
        blocks = "\n".join(body for _, body in FENCE.findall(text)).replace("\\\n", " ")
        whole = INDENTED.findall(text) + re.findall(r"^(?:\w+=\S+ )*(aucdist \S.*)$", blocks, re.MULTILINE)
        for line in dict.fromkeys(whole):
            yield name_of(file), line, True
        for line in dict.fromkeys(re.findall(r"`(aucdist [^`\n]+)`", FENCE.sub("", text))):
            yield name_of(file), line, False


def check_command(command: Any, line: str, whole: bool) -> None:
    """Raise an error if a command or an option of a line does not exist."""
    words = shlex.split(PLACEHOLDER.sub("1", re.split(r" [|>] ", line)[0]), comments=True)[1:]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        below = command.get_command(click.Context(command), words[0])
        assert below is not None, f"no command {words[0]!r}"
        command = below
        words.pop(0)
    if words == ["--help"]:
        return
    if whole:
        command.make_context("aucdist", words)  # refuses what is wrong or missing, and runs nothing
    else:
        command.make_parser(command.context_class(command)).parse_args(words)


def test_commands_and_options_exist() -> None:
    shown, wrong, program = list(commands()), [], app
    for page, line, whole in shown:
        try:
            check_command(program, line, whole)
        except Exception as error:
            wrong.append((page, line, str(error)))
    assert wrong == []
    assert len(shown) > 100


def configurations() -> Iterator[Any]:
    """Yield the YAML in fences."""
    for file in TEXTS:
        for language, body in FENCE.findall(file.read_text(encoding="utf-8")):
            if language == "yaml" and "apiVersion" not in body:  # else it is for Kubernetes
                yield pytest.param(body, id=f"{file.stem}: {body.splitlines()[0]}")


@pytest.mark.parametrize("text", list(configurations()))
def test_configurations_are_accepted(text: str) -> None:
    content = parse_yaml(text, "the page")
    kinds = {"grid": CvConfig, "train": KeepCurrentConfig, "data": TrainConfig, "kind": ClusterConfig, "source": Source}
    kind: Any = next(model for key, model in kinds.items() if key in content)
    assert TypeAdapter(kind).validate_python(content).model_fields_set >= set(content)


def mappings_in_sentences() -> Iterator[Any]:
    """Yield mappings in sentences that a configuration of `train` or `cv` may have, such as `test: {groups: user_id}`."""
    parents = {"test": "data", "impute": "data", "scale": "data", "features": "model", "monotone": "model"}
    known = {*parents, *TrainConfig.model_fields, *CvConfig.model_fields}
    for file in TEXTS:
        for code in re.findall(r"`([a-z_]+: [^`]+)`", FENCE.sub("", file.read_text(encoding="utf-8"))):
            key, text = code.split(":")[0], " ".join(code.split())
            if key in known and "..." not in text:
                yield pytest.param(parents.get(key), text, id=f"{file.stem}: {text[:40]}")


@pytest.mark.parametrize(("parent", "text"), list(mappings_in_sentences()))
def test_keys_of_mappings_in_sentences_exist(parent: str | None, text: str) -> None:
    content = parse_yaml(text, "the page")
    configuration: Any = {"name": "run", "data": {"name": "digits"}, "model": {}}
    (configuration if parent is None else configuration[parent]).update(content)
    errors = []
    for kind in (TrainConfig, CvConfig):
        try:
            TypeAdapter(kind).validate_python(configuration)
        except (InputError, ValidationError) as error:
            errors.append(str(error))
        else:
            return
    assert not all("unknown key" in error for error in errors), errors


def test_every_page_is_in_the_menu() -> None:
    settings = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8"))
    menu = settings["nav"]
    assert set(settings["exclude_docs"].split()) == RECORDS
    listed = set(re.findall(r"'([\w/-]+\.md)'", repr(menu)))
    pages = {file.relative_to(PAGES).as_posix() for file in PAGES.rglob("*.md")}
    assert listed == pages - RECORDS


REFERENCE = "\n".join(file.read_text(encoding="utf-8") for file in (PAGES / "reference").glob("*.md"))
NOT_DESCRIBED = {"__version__", "ESTIMATORS"}
DESCRIBED_FOLDERS = ("pairs", "solvers", "papers", "probability", "search", "selection")
INTERNAL = {
    "aucdist.probability.link_kernels", "aucdist.papers.gev.kernels", "aucdist.papers.scd.kernels", "aucdist.papers.sdcd.kernels",
    "aucdist.papers.tpauc.kernels", "aucdist.papers.zovr.kernels", "aucdist.pairs.kernels",
}  # fmt: skip
"""Modules that others are made of."""


@pytest.mark.parametrize("package", [*PACKAGES, "aucdist.maps", "aucdist.export"])
def test_every_public_name_is_in_the_reference(package: str) -> None:
    module = importlib.import_module(package)
    written = [resolve_name(path) for path in WRITTEN]
    for name in set(module.__all__) - NOT_DESCRIBED:
        by_builder = re.search(rf"^::: {package}\.(\w+\.)*{name}$", REFERENCE, re.MULTILINE)
        assert getattr(module, name) in written or by_builder, name


def test_every_public_module_is_in_the_reference() -> None:
    for folder in DESCRIBED_FOLDERS:
        for file in (ROOT / "aucdist" / folder).rglob("[!_]*.py"):
            module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            described = re.search(rf"^::: {module}(\.\w+)?$", REFERENCE, re.MULTILINE)
            assert bool(described) != (module in INTERNAL), module


def test_table_of_estimators_has_their_solvers() -> None:
    page = (PAGES / "reference" / "estimators.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\w+)\]\(\S+\) \|.*\| ([^|]+) \|$", page, re.MULTILINE)
    table = {name: re.findall(r"`([\w-]+)`", cell) for name, cell in rows}
    estimators = importlib.import_module("aucdist.estimators").ESTIMATORS
    assert {name: sorted(solvers) for name, solvers in table.items()} == {
        name: sorted(estimator.solvers) for name, estimator in estimators.items()
    }
    assert {name: solvers[0] for name, solvers in table.items()} == {
        name: estimator().solver for name, estimator in estimators.items()
    }


def test_error_messages_are_those_of_the_code() -> None:
    """Each message of the index is a text of the code, around the names and numbers that ``...`` stands for."""
    # Texts of one message may be on several lines.
    code = "".join(
        re.sub(r"\"\s*\n\s*f?\"", "", file.read_text(encoding="utf-8"))
        for package in ("aucdist", "flows")
        for file in sorted((ROOT / package).rglob("*.py"))
    )
    page = (PAGES / "errors.md").read_text(encoding="utf-8")
    messages = [text for _, text in re.findall(r"^\| (`+) ?(.+?) ?\1", page, re.MULTILINE)]
    assert len(messages) >= 30
    for message in messages:
        for text in filter(None, (part.strip(" ?") for part in message.split("..."))):
            assert text in code, f"{message}: {text!r}"


def test_the_reference_describes_each_parameter_or_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    from aucdist.papers.sdcd import OAMSeq

    writer = REFERENCE_WRITER.Writer(PAGES / "reference" / "solvers.md", "aucdist.papers.sdcd", "###")
    text = writer.description("OAMSeq")
    assert "aucdist.papers.sdcd.OAMSeq(*, buffer_size=100, epochs=1, n_pairs=None)" in text
    assert "As for `OAMInf`" not in text
    assert "* **`epochs`** : int, default=1\n\n    " in text
    monkeypatch.setattr(OAMSeq, "__doc__", "Draw.\n\nParameters\n----------\nbuffer : int, default=100\n    Rows.\n")
    with pytest.raises(KeyError, match="buffer_size"):
        writer.description("OAMSeq")
    monkeypatch.setattr(OAMSeq, "__doc__", f"{OAMSeq.__doc__}buffer_size : int, default=100\n    Rows.\n")
    with pytest.raises(ValueError, match=r"its docstring describes.*'buffer'"):
        writer.description("OAMSeq")
