"""A run that is killed, terminated, or loses its cluster resumes when it is started again, and ends with the same bits."""

import json
import os
import signal
import time

import numpy as np
import pytest
from distributed import get_client
from support.forked_workers import start_program
from support.runs import QUIET, Following
from support.supervised import supervised

from aucdist.errors import ClusterLost, InputError
from flows.train import run as pipeline
from flows.train.config import TrainConfig

MODEL = {"solver": "all-pairs", "lam": 1e-5, "tol": 0.0, "max_passes": 60}


def config(output, **more):
    data = {"name": "digits", "scale": "standard"}
    return {"name": "digits", "data": data, "model": MODEL, "blocks": 3, "output": str(output)} | more


def weights(run):
    return np.load(f"{run}/model/weights.npy")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return weights(train(config(tmp_path_factory.mktemp("undisturbed")))["run"])


def train(config, observer=QUIET):
    return pipeline.train(TrainConfig.model_validate(config), observer)


# A run of its own, slow enough to be met in the middle.
SCRIPT = """
import json, sys, time
from flows.cli import _on_sigterm
import signal
signal.signal(signal.SIGTERM, _on_sigterm)
from flows.train import run as pipeline
from flows.train.config import TrainConfig
from flows.progress import LineObserver

class Slow(LineObserver):
    def on(self, event, facts):
        if event == "round":
            print("round", facts["round"], flush=True)
            time.sleep(0.3)

pipeline.train(TrainConfig.model_validate(json.loads(sys.argv[1])), Slow(print))
"""


@pytest.mark.parametrize(("by", "ends_with"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143)])
def test_a_run_that_was_ended_resumes(by, ends_with, tmp_path, undisturbed):
    output, printed = tmp_path / "runs", tmp_path / "printed"
    asked = config(output, checkpoint={"rounds": 3})
    process = start_program(SCRIPT, json.dumps(asked), cwd=tmp_path, output=printed)
    # Round 3 has left a checkpoint, and round 4 is due none.
    while process.is_alive() and not (printed.exists() and "round 4\n" in printed.read_text()):
        time.sleep(0.02)
    assert process.is_alive(), printed.read_text()
    os.kill(process.pid, by)
    process.join(30)
    assert process.exitcode == ends_with
    assert newest(output) > 3 if by == signal.SIGTERM else newest(output) == 3
    observer = Following()
    result = train(asked, observer)
    assert any("resumes from the checkpoint of round" in line for line in observer.lines)
    assert np.array_equal(weights(result["run"]), undisturbed)
    assert not (output / ".checkpoints").exists()


def newest(folder):
    return max(json.loads(p.read_text())["content"]["rounds"] for p in folder.glob(".checkpoints/*/checkpoint-*"))


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [{"rounds": 5}, None])
def test_a_run_whose_scheduler_is_lost_starts_again_and_resumes(checkpoint, tmp_path, undisturbed):
    killed = []

    def kill(record):
        if record["round"] == 12 and not killed:
            killed.append(pid_of_scheduler())
            os.kill(killed[0], signal.SIGKILL)

    with supervised(tmp_path) as (there, pid_of_scheduler):
        asked = config(tmp_path / "runs", cluster=there, checkpoint=checkpoint)
        observer = Following(kill)
        if checkpoint is None:
            with pytest.raises(ClusterLost, match="the scheduler was lost"):
                train(asked, observer)
            return
        result = train(asked, observer)
    assert any("the scheduler was lost" in line and "attempt 2 of 3" in line for line in observer.lines)
    # The checkpoint of round 10 may not be whole yet when the scheduler is killed in round 12.
    assert any(f"resumes from the checkpoint of round {n}" in line for line in observer.lines for n in (5, 10))
    assert np.array_equal(weights(result["run"]), undisturbed)
    assert not (tmp_path / "scratch" / "checkpoints").exists()


def test_a_worker_that_is_killed_leaves_a_line(tmp_path, undisturbed):
    killed = []

    def kill(record):
        if record["round"] == 2:
            pids = get_client().run(os.getpid)
            killed.append(min(pids))
            os.kill(pids[killed[0]], signal.SIGKILL)

    observer = Following(kill)
    result = train(config(tmp_path, cluster={"kind": "local", "workers": 2}), observer)
    assert [line.strip() for line in observer.lines if "was lost" in line] == [
        f"worker {killed[0]} was lost; its blocks are loaded again on another worker"
    ]  # and none of those that close when the run ends
    assert np.array_equal(weights(result["run"]), undisturbed)


def test_another_run_of_the_same_id_is_refused(tmp_path):
    def leave(record):
        if record["round"] == 4:
            raise ClusterLost("gone")

    asked = config(tmp_path, checkpoint={"rounds": 2, "id": "mine", "attempts": 1})
    with pytest.raises(ClusterLost, match="gone"):
        train(asked, Following(leave))
    other = asked | {"model": MODEL | {"lam": 1e-3}}
    with pytest.raises(InputError, match=r"of another fit.*There: .*1e-05.*Here: .*0\.001"):
        train(other)


def test_a_random_solver_needs_a_seed(tmp_path):
    asked = config(tmp_path, checkpoint={}, model={"solver": "sdcd"})
    with pytest.raises(ValueError, match=r"give model.random_state"):
        TrainConfig.model_validate(asked)
    TrainConfig.model_validate(asked | {"model": {"solver": "sdcd", "random_state": 0}})
