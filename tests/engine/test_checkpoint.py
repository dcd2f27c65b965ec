"""A fit that was lost goes on from a checkpoint, and ends with the same bits, whatever the solver."""

import json
import os
import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest

from aucdist.data.block import into_blocks
from aucdist.data.own_files import json_digest
from aucdist.data.shards.sharding import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.checkpoint import Journal
from aucdist.engine.dask import DaskBlocks, local_client
from aucdist.errors import InputError, RunError
from aucdist.estimators import ESTIMATORS
from aucdist.pairs import cutting_planes

ROWS = simulate(300, 6, 0.2, seed=1)
FINGERPRINT = {"data": "abc", "model": {"lam": 0.01}}
CASES = [(name, solver, {}) for name, kind in ESTIMATORS.items() for solver in kind.solvers]
CASES += [
    ("PairwiseHingeClassifier", "all-pairs", {"max_fpr": 0.1}),
    ("PairwiseHingeClassifier", "all-pairs", {"max_fpr": 0.3, "penalty": "l1"}),
    ("PairwiseHingeClassifier", "all-pairs", {"max_false_positives": 1}),
    ("PairwiseRampClassifier", "lbfgs", {"max_fpr": 0.1}),
    ("MarginMeanClassifier", "svrg", {"kernel": "rbf"}),
    ("MarginMeanClassifier", "svrg", {"kernel": "rbf", "gram_bytes": 20_000}),
]


class Lost(Exception):
    pass


def load(index):
    return into_blocks(ROWS, 3)[index]


def in_memory():
    return LocalBlocks(into_blocks(ROWS, 3))


def model(name="PairwiseHingeClassifier", solver="all-pairs", more=None):
    options = {"MarginMeanClassifier": {"solver__n_outer": 6}, "LinkClassifier": {"xi": -0.2}}.get(name, {})
    kind = ESTIMATORS[name]
    if solver == "psa":
        options = {"penalty": "l1", "solver__radius": 3.0}
    if "epochs" in ESTIMATORS[name].solvers[solver]().get_params():
        options = {**options, "solver__epochs": 6}
    lam = {} if "lam" not in kind().get_params() else {"lam": 0.01}
    return kind().set_params(solver=solver, tol=0.0, random_state=3, **lam, **options, **(more or {}))


def fit(estimator, blocks, journal=None, rounds=2, lost_after=None):
    n = 0

    def callback(record):
        nonlocal n
        n += 1
        if journal is not None:
            journal.round_done(rounds, np.inf)
        if n == lost_after:
            raise Lost

    with warnings.catch_warnings(action="ignore"):
        return estimator.set_params(max_passes=12).fit(blocks, callback=callback)


def journal(folder, blocks, fingerprint=FINGERPRINT):
    said = []
    made = Journal(str(folder), fingerprint, blocks, said.append)
    made.said = said
    return made


def lost_and_resumed(folder, estimator, blocks, lost_after):
    """Lose a fit after some rounds, and return the fit that goes on from its checkpoint."""
    first = journal(folder, blocks())
    with pytest.raises(Lost):
        fit(estimator(), first.blocks, first, rounds=1, lost_after=lost_after)
    again = journal(folder, blocks())
    assert again.rounds == lost_after
    return fit(estimator(), again.blocks, again)


@pytest.mark.parametrize(("name", "solver", "more"), CASES)
def test_every_solver_goes_on_to_the_same_bits(name, solver, more, tmp_path):
    undisturbed = fit(model(name, solver, more), in_memory())
    lost_after = max(1, min(5, len(undisturbed.history_) - 1))
    resumed = lost_and_resumed(tmp_path, lambda: model(name, solver, more), in_memory, lost_after)
    for attribute in ("coef_", "dual_coef_", "intercept_"):
        if hasattr(undisturbed, attribute):
            assert getattr(resumed, attribute).tobytes() == getattr(undisturbed, attribute).tobytes()
    columns = ["round", "passes", "primal", "dual", "relative_gap"]
    assert resumed.history_[columns].equals(undisturbed.history_[columns])


@pytest.mark.parametrize("lost_after", [2, 4])
def test_few_rows_go_on_to_the_same_bits(lost_after, tmp_path, monkeypatch):
    early = {"STALL_ROUNDS": 1, "STALL_SHARE_OF_PLANES": 0.0, "ROWS_PER_ROUND": 60}  # so early comes the interior point
    for name, value in early.items():
        monkeypatch.setattr(cutting_planes, name, value)

    def wide():
        return LocalBlocks(into_blocks(simulate(60, 90, 0.4, seed=2), 3))

    undisturbed = fit(model(), wide())
    assert undisturbed.certificate_.relative_gap < 1e-6  # by the interior point
    assert lost_and_resumed(tmp_path, model, wide, lost_after).coef_.tobytes() == undisturbed.coef_.tobytes()


def load_far(index):
    return replace(block := load(index), rows=block.rows._replace(values=block.X + 1e6))


@pytest.mark.parametrize(
    ("features", "loader"),
    [
        (None, load), (None, load_far), ("bins", load_far), ({"map": "bins", "bins": 20, "interactions": 1}, load),
        ({"map": "nystroem", "landmarks": 20}, load_far), ("leaves", load),
    ],
)  # fmt: skip
def test_streamed_rows_of_a_map_go_on_to_the_same_bits(features, loader, tmp_path):
    if features == "leaves":
        pytest.importorskip("lightgbm")

    def streamed():
        return LocalBlocks.load(loader, 3, stream=True)

    expected = fit(model(more={"features": features}), streamed())
    resumed = lost_and_resumed(tmp_path, lambda: model(more={"features": features}), streamed, 4)
    assert resumed.coef_.tobytes() == expected.coef_.tobytes()


def begun(folder, blocks, lost_after=5):
    """Lose a fit after some rounds; its newest checkpoint is of the round before."""
    kept = journal(folder, blocks)
    with pytest.raises(Lost):
        fit(model(), kept.blocks, kept, rounds=1, lost_after=lost_after)
    return kept


@pytest.fixture(scope="module")
def undisturbed():
    return fit(model(), in_memory()).coef_


def resumed(folder, blocks):
    again = journal(folder, blocks)
    return again, fit(model(), again.blocks, again, rounds=3).coef_


def test_a_fit_that_goes_on_does_not_look_at_the_rows_until_the_journal_ends(tmp_path, undisturbed):
    begun(tmp_path, in_memory())

    class Counting(LocalBlocks):
        calls = 0

        def without_memory(self):
            return Counting(self._blocks)

        def reduce(self, step, *args):
            Counting.calls += step.__module__ != "aucdist.engine.checkpoint"
            return super().reduce(step, *args)

    again = journal(tmp_path, Counting(into_blocks(ROWS, 3)))
    rounds = 0

    def callback(record):
        nonlocal rounds
        rounds += 1
        assert (Counting.calls > 0) == (rounds > again.rounds)

    fitted = model().set_params(max_passes=12)
    with warnings.catch_warnings(action="ignore"):
        coef = fitted.fit(again.blocks, callback=callback).coef_
    assert rounds > again.rounds > 0
    assert np.array_equal(coef, undisturbed)


def test_the_last_two_are_kept(tmp_path):
    folder = tmp_path / "fit"
    begun(folder, in_memory())
    assert sorted(p.name for p in folder.glob("checkpoint-*")) == ["checkpoint-000003.json", "checkpoint-000004.json"]
    named = {
        name
        for p in folder.glob("checkpoint-*")
        for content in [json.loads(p.read_text())["content"]]
        for name in [*content["journal"], *(n for names in content["memory"].values() for n in names)]
    }
    assert {p.name for p in folder.glob("*.npz")} == named


def spoil(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("what", ["manifest", "journal", "memory", "memory missing", "empty manifest"])
def test_a_corrupt_one_is_not_used_but_the_one_before(what, tmp_path, undisturbed):
    begun(tmp_path, in_memory())
    older, newest = sorted(tmp_path.glob("checkpoint-*"))
    of = {p: json.loads(p.read_text())["content"] for p in (older, newest)}
    if what == "manifest":
        spoil(newest)
    elif what == "empty manifest":
        newest.write_bytes(b"")
    elif what == "journal":
        spoil(tmp_path / of[newest]["journal"][-1])
    else:
        names = {n for names in of[newest]["memory"].values() for n in names}
        mine = names - {n for names in of[older]["memory"].values() for n in names}
        target = tmp_path / min(mine)
        target.unlink() if what == "memory missing" else spoil(target)
    again, coef = resumed(tmp_path, in_memory())
    assert any(f"{newest.name} is corrupt" in text for text in again.said)
    assert any(text == f"resumes from the checkpoint of round {of[older]['rounds']}" for text in again.said)
    assert np.array_equal(coef, undisturbed)


def test_one_of_another_fit_is_refused_and_both_fingerprints_are_shown(tmp_path):
    begun(tmp_path, in_memory())
    with pytest.raises(InputError, match=r"of another fit.*There: .*\"abc\".*Here: .*\"xyz\""):
        journal(tmp_path, in_memory(), {**FINGERPRINT, "data": "xyz"})


def test_one_whose_solver_took_other_steps_is_refused_before_the_fit(tmp_path):
    begun(tmp_path, in_memory())
    for path in tmp_path.glob("checkpoint-*"):
        content = json.loads(path.read_text())["content"] | {"format": 1}
        path.write_text(json.dumps({"sha256": json_digest(content), "content": content}))
    told = "has format 1, not 4, so another version of aucdist began this fit: end it with"
    with pytest.raises(InputError, match=told):
        journal(tmp_path, in_memory())


def test_a_fit_that_does_not_repeat_itself_is_refused(tmp_path):
    begun(tmp_path, in_memory())
    again = journal(tmp_path, in_memory())
    with pytest.raises(RunError, match=r"does not repeat the one of the checkpoint.*Another version of aucdist"):
        fit(model().set_params(lam=0.02), again.blocks, again)


def test_a_fit_goes_on_if_a_checkpoint_cannot_be_written(tmp_path, undisturbed, monkeypatch):
    from aucdist.engine import checkpoint

    def full(url, data):
        raise InputError("No space left on device")

    kept = journal(tmp_path, in_memory())
    monkeypatch.setattr(checkpoint, "write_bytes", full)
    coef = fit(model(), kept.blocks, kept, rounds=1).coef_
    assert np.array_equal(coef, undisturbed)
    assert kept.said[0] == "no checkpoint could be written: No space left on device"


def test_checkpoints_are_saved_by_rounds_by_seconds_or_on_request(tmp_path):
    for rounds, seconds, now, expected in ((2, np.inf, False, 2), (None, 0.0, False, 1), (None, np.inf, True, 1)):
        folder = tmp_path / str((rounds, seconds))
        kept = journal(folder, in_memory())
        saved = []

        def callback(record, kept=kept, saved=saved, due=(rounds, seconds), now=now):
            kept.round_done(*due, now=now)
            saved.append(kept.rounds)

        with warnings.catch_warnings(action="ignore"):
            model().set_params(max_passes=6).fit(kept.blocks, callback=callback)
        assert saved[:4] == [r - r % expected for r in range(1, 5)]


# ---- on a cluster -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    with local_client(2, memory_limit="1GiB") as client:
        yield client


def test_on_workers_the_chain_of_steps_is_cut_and_the_bits_are_the_same(client, tmp_path, undisturbed):
    blocks = DaskBlocks.load(client, load, 3)
    kept = journal(tmp_path, blocks)
    calls = []

    def callback(record):
        kept.round_done(4, np.inf)
        calls.append(max(len(branch._inner._chain) for branch in kept.branches.values()))
        if record["round"] == 6:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        if record["round"] == 9:
            raise Lost

    with pytest.raises(Lost):
        model().set_params(max_passes=12).fit(kept.blocks, callback=callback)
    assert calls[3] == calls[7] == 1  # what gives the memory back
    assert max(calls) < 20
    # Here, and there again with other blocks' places: one worker was lost.
    again, coef = resumed(tmp_path, in_memory())
    assert again.said[0] == "resumes from the checkpoint of round 8"
    assert np.array_equal(coef, undisturbed)
    _, coef = resumed(tmp_path, DaskBlocks.load(client, load, 3))
    assert np.array_equal(coef, undisturbed)
