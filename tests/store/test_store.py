"""A model store: one winner of two changes at once, whole versions after a kill, nothing overwritten."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucdist.data.own_files import parse_checked
from aucdist.data.storage import files
from aucdist.errors import InputError
from aucdist.store.history import (
    Change,
    append,
    check_name,
    keep,
    present,
    promote,
    read_store,
    resolve,
    rollback,
    split_version,
)

MARKER = "model.json"


def content(number: int) -> dict[str, bytes]:
    return {MARKER: b"{%d}" % number, "weights.npy": bytes([number % 256]) * 100}


def filled(url: Path, n: int) -> str:
    for number in range(n):
        promote(read_store(str(url)), content(number), MARKER, {"run": f"run-{number}"})
    return str(url)


def test_versions_count_and_the_last_one_is_in_use(tmp_path: Path) -> None:
    url = filled(tmp_path / "store", 3)
    store = read_store(url)
    assert (store.current.version, store.current.replaced) == (3, 2)
    assert sorted(store.versions) == [1, 2, 3]
    assert Path(resolve(url, MARKER), MARKER).read_bytes() == b"{2}"
    assert Path(resolve(f"{url}@1", MARKER), MARKER).read_bytes() == b"{0}"
    assert resolve(str(tmp_path / "nothing"), MARKER) == str(tmp_path / "nothing")
    assert split_version("s3://b/m@12") == ("s3://b/m", 12)


def test_a_way_back_and_forth(tmp_path: Path) -> None:
    url = filled(tmp_path / "store", 3)
    assert rollback(read_store(url), MARKER).version == 2
    assert rollback(read_store(url), MARKER).version == 1
    with pytest.raises(InputError, match=r"version 1 .* replaced none"):
        rollback(read_store(url), MARKER)
    assert rollback(read_store(url), MARKER, 3).version == 3
    assert promote(read_store(url), content(9), MARKER, {}).version == 4
    assert [change.kind for change in read_store(url).changes] == ["promote"] * 3 + ["rollback"] * 3 + ["promote"]
    with pytest.raises(InputError, match="has no version 9: it has 1 to 4"):
        resolve(f"{url}@9", MARKER)


def test_a_change_since_the_store_was_read_wins(tmp_path: Path) -> None:
    url = filled(tmp_path / "store", 1)
    before = read_store(url)
    promote(before, content(5), MARKER, {})
    files = {p: p.read_bytes() for p in Path(url).rglob("*") if p.is_file()}
    with pytest.raises(InputError, match="changed by somebody else at the same moment"):
        promote(before, content(6), MARKER, {})
    with pytest.raises(InputError, match="changed by somebody else"):
        rollback(before, MARKER, 1) if before.current.version != 1 else append(before, before.current)
    assert {p: p.read_bytes() for p in Path(url).rglob("*") if p.is_file()} == files


def test_of_many_promotions_at_once_one_wins(tmp_path: Path) -> None:
    url = filled(tmp_path / "store", 1)
    store, won, lost = read_store(url), [], []
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        try:
            won.append(promote(store, content(number), MARKER, {}))
        except InputError as error:
            lost.append(str(error))

    threads = [threading.Thread(target=work, args=(10 + number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 7)
    assert all("at the same moment" in text for text in lost)
    after = read_store(url)
    assert after.current == won[0]
    assert Path(resolve(url, MARKER), MARKER).exists()
    assert len(list(Path(url).glob("version-*"))) == 2


PROMOTE = """
import sys
from aucdist.store.history import read_store
from aucdist.store.history import promote
print("ready", flush=True)
for number in range(1000):
    promote(read_store(sys.argv[1]), {"model.json": b"%d" % number, "weights.npy": b"%d" % number * 5000}, "model.json", {})
"""


def test_a_kill_at_any_moment_leaves_a_whole_current_version(tmp_path: Path) -> None:
    url = tmp_path / "store"
    for attempt in range(10):
        process = subprocess.Popen([sys.executable, "-c", PROMOTE, str(url)], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.025 * attempt)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        store = read_store(str(url))
        if store.current is not None:
            folder = Path(resolve(str(url), MARKER))
            number = folder.joinpath(MARKER).read_bytes()
            assert folder.joinpath("weights.npy").read_bytes() == number * 5000
            # A killed write may leave a hidden file, which no reader opens.
            assert sorted(store.current.files) == sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))
    assert read_store(str(url)).current is not None
    assert promote(read_store(str(url)), content(1), MARKER, {}).version == max(read_store(str(url)).versions)


@settings(max_examples=30)
@given(n=st.integers(1, 6), back=st.integers(0, 5), most=st.integers(1, 7))
def test_keep_removes_old_versions_and_only_those(tmp_path_factory, n, back, most):
    folder = tmp_path_factory.mktemp("keep")
    url = filled(folder / "store", n)
    (folder / "store" / "notes.txt").write_text("mine")
    if 0 < back < n:
        rollback(read_store(url), MARKER, back)
    current = read_store(url).current.version
    gone = keep(read_store(url), MARKER, most)
    left = present(read_store(url), MARKER)
    assert current in left
    assert sorted(gone + left) == list(range(1, n + 1))
    assert all(number < current for number in gone)
    assert len(left) == max(min(most, n), n - current + 1)
    assert (folder / "store" / "notes.txt").read_text() == "mine"
    assert len(read_store(url).changes) == n + (0 < back < n)
    for number in gone:
        with pytest.raises(InputError, match="was removed"):
            resolve(f"{url}@{number}", MARKER)


def test_a_damaged_history_is_refused(tmp_path: Path) -> None:
    url = filled(tmp_path / "store", 3)
    (tmp_path / "store" / "history" / "00000002.json").unlink()
    with pytest.raises(InputError, match=r"a change is missing before 00000003\.json"):
        read_store(url)
    (tmp_path / "store" / "history" / "00000002.json").write_text("{}")
    with pytest.raises(InputError, match=r"00000002.json is damaged"):
        read_store(url)


def test_names_of_files_lead_nowhere_else() -> None:
    text = b'{"kind": "promote", "version": 1, "replaced": null, "folder": "../x", "files": {"a": "%s"}}' % (b"0" * 64)
    with pytest.raises(InputError, match="is not the name of a file"):
        parse_checked(text, Change, "history")


@pytest.mark.parametrize("name", ["", "  ", "/", ".", "a/..", "m@1", "a/m@12/", "~", "~/m", "file:", "file:m", "file://m",
                                  "models:m", "m.json", "a::b", "m\x1b[2J", "s3://"])  # fmt: skip
def test_a_name_that_means_something_else_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be a model store"):
        check_name(name)


@pytest.mark.parametrize(
    "name", ["m", "a/m", "/a/m@x", "m@0", "s3://bucket/m", "file:///a/m", "models/churn v2", "s3://bucket"]
)
def test_other_names_are_taken(name: str) -> None:
    check_name(name)


def test_a_damaged_version_does_not_come_back(tmp_path: Path) -> None:
    url = filled(tmp_path / "store", 2)
    Path(resolve(f"{url}@1", MARKER), "weights.npy").write_bytes(b"other bytes")
    with pytest.raises(InputError, match=r"weights.npy is not what was written: it stays out of use"):
        rollback(read_store(url), MARKER)
    assert read_store(url).current.version == 2


def test_what_a_link_leads_to_is_not_removed(tmp_path: Path) -> None:
    url = filled(tmp_path / "store", 3)
    folder = Path(resolve(f"{url}@1", MARKER))
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    with pytest.raises(InputError, match="is a link to another folder"):
        keep(read_store(url), MARKER, 1)
    assert sorted(path.name for path in elsewhere.iterdir()) == sorted(content(0))
    assert len(present(read_store(url), MARKER)) == 3


def test_local_paths_are_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("~", "file:m", "a::b", "m?"):
        files.write_bytes(f"{name}/x", b"1")
        assert (tmp_path / name / "x").read_bytes() == files.read_bytes(f"{name}/x") == b"1"
