"""The configuration of a search, and what it refuses before anything runs."""

import logging
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from support.runs import QUIET, load_cv, load_train, searched, write_config
from support.tables import table_beside

from aucdist.data.block import Block, into_blocks
from aucdist.data.dataset import Schema
from aucdist.data.shards.manifest import write_shards
from aucdist.errors import InputError
from flows.config.loading import configs_folder, to_yaml
from flows.cv.config import CvConfig
from flows.cv.run import cross_validate, open_search
from flows.orchestration import flows
from flows.progress import RunObserver


def test_every_configuration_loads_and_loads_again_as_resolved(tmp_path: Path) -> None:
    for path in configs_folder("cv").glob("*.yaml"):
        config = load_cv(path.stem)
        assert config.name == path.stem
        again = tmp_path / path.name
        again.write_text(to_yaml(config))
        assert load_cv(str(again)).settings == config.settings


def test_the_configuration_of_a_training_run_can_be_searched(tmp_path: Path) -> None:
    path, grid = tmp_path / "config.yaml", "grid={features: [null, {map: bins, interactions: 10}], lam: [1e-2, 1e-3]}"
    path.write_text(to_yaml(load_train("digits")))
    config = load_cv(str(path), ["metric=average_precision", grid])
    assert config.baselines
    assert len(config.settings) == 4
    path.write_text(to_yaml(load_train("digits", ["checkpoint={}"])))
    with pytest.raises(InputError, match="checkpoint"):
        load_cv(str(path), [grid])


def test_a_spread_is_even_on_a_log_scale() -> None:
    config = load_cv("digits", ["grid.lam={first: 10, last: 1e-4, number: 11}"])
    assert [point["lam"] for point in config.settings][:4] == [10.0, 3.162, 1.0, 0.3162]
    assert config.settings[-1] == {"lam": 1e-4}


@pytest.mark.parametrize(("setting", "message"), table_beside(__file__))
def test_wrong_settings_of_a_search_are_refused(setting: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_cv("digits", [setting])
    assert message in str(caught.value)
    assert "digits.yaml" in str(caught.value)


def test_a_search_without_a_grid_is_told_how_to_write_one() -> None:
    path = Path(__file__).parents[3] / "configs/train/digits.yaml"
    with pytest.raises(InputError, match=r"grid must be given, as in --set 'grid=\{lam: \[0\.001, 0\.01\]\}'"):
        load_cv(str(path), [])


# ---- the Prefect flow round a search; that a server runs flows at all is shown with the flow of training


QUICK = [
    "cluster=none", "folds.repeats=1", "folds.number=2", "nested=null", "model.tol=0.1", "grid.lam=[1.0, 0.1]",
]  # fmt: skip


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What artifacts were made, by key."""
    content_of: dict[str, Any] = {}

    def make(content: Any, key: str, description: str) -> Any:
        content_of[key] = content
        return uuid4()

    monkeypatch.setattr(flows, "get_run_logger", lambda: logging.getLogger("test"))
    monkeypatch.setattr(flows.FlowObserver, "run_stage", RunObserver.run_stage)
    for kind in ("markdown", "table"):
        monkeypatch.setattr(flows, f"create_{kind}_artifact", make)
    return content_of


def test_artifacts_of_a_search(made: dict[str, Any], tmp_path: Path) -> None:
    result = flows.cross_validate.fn(load_cv("digits", QUICK, str(tmp_path)))
    verdict = made["cross-validate-verdict"]
    assert verdict.startswith("Chosen: lam ")
    assert "| Test AUC | 0.9" in verdict
    plain = searched("digits", *QUICK, output=tmp_path, observer=flows.FlowObserver())
    assert (plain["table"], plain["tasks"]["kept"]) == (result["table"], 2)


def test_progress_in_words(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "test")
    monkeypatch.setattr(flows, "get_run_logger", lambda: logging.getLogger("test"))
    observer = flows.FlowObserver()
    observer.tasks(0, 4)
    observer.tasks(4, 4, 1, "best so far auc 0.9 at lam 1", 0.0)
    assert caplog.messages == ["  0 of 4 tasks", "  4 of 4 tasks, 1 failed, best so far auc 0.9 at lam 1"]


# ---- folds of a search keep the groups of the source whole ------------------------------------


def opened(folder, *settings):
    r = np.random.default_rng(0)
    user = r.integers(0, 40, 600)
    columns = {"a": r.normal(size=600), "user": [f"u{u}" for u in user], "y": r.integers(0, 2, 600), "b": user % 7}
    frame = pd.DataFrame(columns)
    source = {"label": "y", "positive": 1, "groups": "user"}
    search = {"folds": {"number": 3, "repeats": 1}, "grid": {"lam": [0.1, 1.0]}}
    config = load_cv(str(write_config(folder, frame, source, **search)), list(settings), str(folder / "runs"))
    return frame, open_search(config, QUIET)[1]


def test_groups_stay_whole(tmp_path):
    frame, search = opened(tmp_path)
    for fold in search.folds.outer():
        sides = search.folds.masks(fold)
        train, held_out = (set(frame["user"][side]) for side in (sides.train, sides.held_out))
        assert train
        assert held_out
        assert not train & held_out


def test_two_ways_of_keeping_rows_together(tmp_path):
    with pytest.raises(InputError, match=r"leave out `folds\.groups`"):
        opened(tmp_path, "folds.duplicates=together")


def test_a_gap_before_the_held_out_rows_of_time(tmp_path):
    settings = ["data.source.groups=null", "data.source.drop=[user]", "folds.time=a"]
    frame, without = opened(tmp_path, *settings)
    _, search = opened(tmp_path, *settings, "folds.gap_rows=10", "folds.gap_time=0.25")
    time = frame["a"].to_numpy()
    for fold in search.folds.outer():
        sides, wider = search.folds.masks(fold), without.folds.masks(fold)
        assert (sides.held_out == wider.held_out).all()
        latest = np.sort(time[wider.train])[:-10]
        known = latest[latest <= time[sides.held_out].min() - 0.25]
        assert np.sort(time[sides.train]).tolist() == known.tolist()
        assert len(known) < wider.train.sum() - 10


# ---- a search over rows that are read block by block: shards, and files that are read directly


N = 400


def rows() -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(0)
    y = np.where(r.random(N) < 0.25, 1, -1)
    return np.round(r.normal(size=(N, 4)) + 0.6 * (y == 1)[:, None], 2), y


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> str:
    X, y = rows()
    url = str(tmp_path_factory.mktemp("data") / "shards")
    write_shards(into_blocks(Block.of(X, y), 3), Schema(("a", "b", "c", "d"), "class", ("1",), ("-1",), {}), url)
    return url


def run(source: dict[str, Any], output: Path, **more: Any) -> dict[str, Any]:
    data = {"source": source, "test": {"fraction": 0.25, "seed": 1}, **more.pop("data", {})}
    config = {
        "name": "remote", "data": data, "model": {"tol": 0.05}, "grid": {"lam": [1.0, 0.01]}, "folds": {"number": 3},
        "output": str(output), **more,
    }  # fmt: skip
    return cross_validate(CvConfig.model_validate(config), QUIET)


def figures(result: dict[str, Any]) -> list[Any]:
    return [result["table"], result["score"], result["refit"]["metrics"], result["refit"]["certificate"]]


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_shards_here_and_on_workers_give_the_same_bits(shards: str, scale: str, client: Any, tmp_path: Path) -> None:
    cluster = {"kind": "address", "address": client.scheduler.address, "scratch": str(tmp_path / "scratch")}
    results = [
        run({"source": shards, "format": "shards"}, tmp_path / where, data={"scale": scale}, **how)
        for where, how in (
            ("here", {}), ("tasks", {"cluster": cluster, "placement": "tasks"}),
            ("masks", {"cluster": cluster, "placement": "masks"}),
        )
    ]  # fmt: skip
    assert figures(results[0]) == figures(results[1]) == figures(results[2])
    assert [result["placement"] for result in results] == ["masks", "tasks", "masks"]
    assert (Path(results[0]["run"]) / "scores.parquet").is_file()


@pytest.mark.parametrize("missing", [False, True])
def test_files_read_directly_have_the_folds_of_rows_read_here(missing: bool, tmp_path: Path) -> None:
    """And missing values are imputed in each fold."""
    X, y = rows()
    cells = pd.DataFrame(X, columns=list("abcd")).astype(object)
    if missing:
        cells.iloc[::7, 2] = "?"
    file = tmp_path / "rows.csv"
    cells.assign(label=y).to_csv(file, index=False)
    source = {"source": str(file), "format": "csv", "label": "label", "positive": "1", "missing": "keep"}
    data = {"impute": "mean"} if missing else {}
    here = run(source, tmp_path / "here", data=data)
    direct = run(source, tmp_path / "direct", data=data | {"direct": True}, blocks=1)
    assert figures(direct) == figures(here)


def test_what_needs_the_rows_here_is_refused(shards: str, tmp_path: Path) -> None:
    for folds in ({"groups": "a"}, {"time": "a"}, {"duplicates": "together"}):
        with pytest.raises(InputError, match="folds by groups, time or duplicates need all rows"):
            run({"source": shards, "format": "shards"}, tmp_path / "runs", folds=folds)
    with pytest.raises(InputError, match="positive rows cannot be divided into 300 folds"):
        run({"source": shards, "format": "shards"}, tmp_path / "runs", folds={"number": 300})
    assert not (tmp_path / "runs").exists()
