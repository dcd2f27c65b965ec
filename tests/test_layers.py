"""Imports only run down from layer to layer; the packages that cost seconds stay out of the library's way."""

import pkgutil
import re
from pathlib import Path

import pytest
from support.printed import script
from support.processes import assert_absent_in_turn

ROOT = Path(__file__).resolve().parents[1]
import_graph = script("import_graph")

SHARED = [
    {"flows"}, {"flows.config", "flows.progress"}, {"flows.compute"}, {"flows.rows"}, {"flows.run_folder"}, {"flows.command"},
]  # fmt: skip
"""The layers of `flows` below the use cases."""
ABOVE = [{"flows.orchestration"}, {"flows.cli"}]
USE_CASES = {f"flows.{module.name}" for module in pkgutil.iter_modules([str(ROOT / "flows")])}.difference(
    *SHARED, *ABOVE
)
LAYERS = [
    {"aucdist.errors", "aucdist.extras", "aucdist.parameters", "aucdist.text"},
    {"aucdist.kernels", "aucdist.metrics"},
    {"aucdist.probability", "aucdist.data", "aucdist.report"},
    {"aucdist.engine"},
    {"aucdist.solvers", "aucdist.pairs", "aucdist.papers", "aucdist.sampling", "aucdist.selection", "aucdist.maps"},
    {"aucdist.estimators"},
    {"aucdist.drift"},
    {"aucdist.store"},
    {
        "aucdist.search", "aucdist.model", "aucdist.export", "aucdist",
    },
    *SHARED,
    USE_CASES,
    *ABOVE,
]  # fmt: skip
"""From the ground up. Folds (selection) lie below the estimators, so that calibration can use them; samplers call solvers."""

BETWEEN_USE_CASES = {
    ("train", "init"),  # a configuration for a file that has none
    ("audit", "export"),  # the rows of a run, read again
    ("audit", "train"),  # trains again
    ("preview", "train"),  # the configuration of a file that has none
    ("cv", "train"),  # a search ends with a training run of the chosen setting
    ("keep_current", "train"),  # a night of all of them
    ("keep_current", "promote"),
    ("keep_current", "score"),
    ("keep_current", "watch"),
    ("keep_current", "model_store"),
    ("promote", "model_store"),  # what was decided, in words and as a picture
    ("promote", "mlflow_registry"),  # a store that is a registered model
    ("mlflow_registry", "model_store"),
    ("watch", "watch_state"),
    ("explain", "score"),  # the lines about missing and unknown values
    ("watch", "score"),  # the format of the rows that a model was trained on
    ("promote", "compare"),  # the paired tests of two runs
}
"""The use cases that another one is allowed to import."""

MODULES = sorted(import_graph.files_of_modules())


@pytest.fixture(scope="module")
def files() -> dict[str, set[str]]:
    """The imports between files; made here, since each process that collects the tests imports this file."""
    return import_graph.graph_of_files()


def layer_of(module: str) -> int:
    for i, names in enumerate(LAYERS):
        if any(module == name or (name.count(".") and module.startswith(f"{name}.")) for name in names):
            return i
    return pytest.fail(f"{module} has no layer")


def test_imports_run_down(files: dict[str, set[str]]) -> None:
    # The package's lazy names are the way in for users, not an import that anything depends on.
    imports = {(module, other) for module, imported in files.items() if module != "aucdist" for other in imported}
    assert {(module, other) for module, other in imports if layer_of(other) > layer_of(module)} == set()


def test_use_cases_stay_apart(files: dict[str, set[str]]) -> None:
    cases = {module: module.split(".")[1] for module in files if ".".join(module.split(".")[:2]) in USE_CASES}
    imports = {
        (case, cases[other])
        for module, case in cases.items()
        for other in files[module]
        if cases.get(other, case) != case
    }
    assert imports <= BETWEEN_USE_CASES


@pytest.mark.parametrize("kind", ["files", "folders"])
def test_no_circles(kind: str, files: dict[str, set[str]]) -> None:
    """Not even of imports inside functions: those hide a circle, they do not open it."""
    graph = files if kind == "files" else import_graph.graph_of_folders(files)
    assert import_graph.circles(graph) == []


def test_a_circle_is_found() -> None:
    assert import_graph.circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    with pytest.raises(ValueError, match="circles"):
        import_graph.layers({"a": {"b"}, "b": {"a"}})


def test_layers_of_a_graph() -> None:
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert import_graph.layers(graph) == [["c"], ["b"], ["a"]]
    assert import_graph.drawing(graph).count("<line") == 3


@pytest.mark.parametrize("name", ["prefect", "distributed", "dask_kubernetes"])
def test_heavy_packages_have_one_place(name: str) -> None:
    in_engine = ("dask", "worker_calls", "worker_part")
    said = " ".join((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split())
    assert f"imports `distributed` only in `aucdist/engine/{{{','.join(in_engine)}}}.py`" in said
    allowed = {f"aucdist.engine.{file}" for file in in_engine} if name == "distributed" else set()
    for module in MODULES:
        if not module.startswith("aucdist") or module in allowed:
            continue
        path = ROOT.joinpath(*module.split("."))
        text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
        assert f"import {name}" not in text, module
        assert f"from {name}" not in text, module


HELP = "from click.testing import CliRunner; from flows.cli import app; assert not CliRunner().invoke(app, ['--help']).exit_code"
PEERS = ["imblearn", "statsmodels", "skglm", "dask_ml", "lightgbm", "xgboost", "vowpalwabbit", "liblinear", "sksurv"]


def test_what_costs_seconds_is_loaded_where_it_is_used() -> None:
    assert_absent_in_turn(
        (HELP, ["numpy", "numba", "sklearn", "dask", "distributed", "prefect", "pandas", "pydantic"]),
        ("import aucdist.report.run", ["jinja2", "scipy"]),
        ("import flows.reproduce.run", [*PEERS, "jinja2"]),
        ("import benchmarks.suites, benchmarks.output, benchmarks.peers.suite, benchmarks.link", [*PEERS, "jinja2"]),
        ("import flows.train.run", ["prefect"]),
    )


def test_commands_on_a_small_table_load_what_they_use(tmp_path: Path) -> None:
    """A table of six rows takes no longer than its imports: those are most of the time of a first hour."""
    (tmp_path / "six.csv").write_text("age,city,fraud\n25,A,0\n35,B,0\n45,A,1\n,B,0\n51,A,1\n33,B,0\n")
    fits = [
        "matplotlib",
        "prefect", "distributed", "dask", "imblearn", "lightgbm", "statsmodels", "fsspec.implementations.http", "aiohttp",
        "sklearn.neighbors", "sklearn.linear_model", "sklearn.decomposition", "sklearn.metrics", "scipy.cluster",
        "scipy.stats._stats_py",
        "pyarrow.dataset", "aucdist.estimators.margin_mean", "aucdist.estimators.link",
        "aucdist.papers.zovr", "aucdist.papers.gev",
    ]  # fmt: skip
    looks = ["pandas", "sklearn", "joblib", "aucdist.search.auto", *fits]

    def command(*words: str) -> str:
        return HELP.replace("['--help']", repr(list(words)))

    assert_absent_in_turn(
        (command("init", "six.csv", "--label", "fraud"), [*looks, "numba", "scipy"]),
        (command("data", "preview", "six.yaml"), looks),
        (command("train", "six.yaml", "--output", "runs"), fits),
        cwd=tmp_path,
    )


def test_names_in_the_architecture_exist() -> None:
    """Files and dotted names that ARCHITECTURE.md prints as code are there."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    files = re.findall(r"`([\w/-]+\.(?:py|md|yaml))`", text)
    assert files
    for name in files:
        assert any(path.match(name) for path in ROOT.glob(f"[a-z]*/**/{Path(name).name}")), name
    for name in re.findall(r"`((?:aucdist|flows)(?:\.\w+)+)`", text):
        pkgutil.resolve_name(name)
