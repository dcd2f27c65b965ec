"""A model store: one winner of two changes at once, whole versions after a kill, nothing overwritten."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import s3fs
from hypothesis import given, settings, strategies as st
from support.s3_servers import MOCK, mock_server, new_connections, point_to

from aucdist.data.own_files import parse_checked
from aucdist.data.storage import files
from aucdist.errors import InputError
from aucdist.store import (
    Change,
    check_name,
    lease,
    promote,
    read_store,
    remove_old_versions,
    resolve,
    rollback,
    stored_version_numbers,
)

MARKER = "model.json"


def content(number: int) -> dict[str, bytes]:
    return {MARKER: b"{%d}" % number, "weights.npy": bytes([number % 256]) * 100}


def filled(url: Path, n: int) -> str:
    for number in range(n):
        promote(read_store(str(url)), content(number), {"run": f"run-{number}"})
    return str(url)


def at_once(work: Callable[[int], None]) -> None:
    """Call a function with the numbers from 10 on in eight threads."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(10, 18)))


def test_of_many_promotions_at_once_one_wins(tmp_path: Path) -> None:
    url = filled(tmp_path / "store", 1)
    store, won, lost = read_store(url), [], []
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        try:
            won.append(promote(store, content(number), {}))
        except InputError as error:
            lost.append(str(error))

    at_once(work)
    assert (len(won), len(lost)) == (1, 7)
    assert all("at the same moment" in text for text in lost)
    after = read_store(url)
    assert after.current == won[0]
    assert Path(resolve(url), MARKER).exists()
    assert len(list(Path(url).glob("version-*"))) == 2


@settings(max_examples=30)
@given(n=st.integers(1, 6), back=st.integers(0, 5), most=st.integers(1, 7))
def test_keep_removes_old_versions_and_only_those(tmp_path_factory, n, back, most):
    folder = tmp_path_factory.mktemp("keep")
    url = filled(folder / "store", n)
    (folder / "store" / "notes.txt").write_text("mine")
    if 0 < back < n:
        rollback(read_store(url), back)
    current = read_store(url).current.version
    gone = remove_old_versions(read_store(url), most)
    left = stored_version_numbers(read_store(url))
    assert current in left
    assert sorted(gone + left) == list(range(1, n + 1))
    assert all(number < current for number in gone)
    assert len(left) == max(min(most, n), n - current + 1)
    assert (folder / "store" / "notes.txt").read_text() == "mine"
    assert len(read_store(url).changes) == n + (0 < back < n)
    for number in gone:
        with pytest.raises(InputError, match="was removed"):
            resolve(f"{url}@{number}")


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
    Path(resolve(f"{url}@1"), "weights.npy").write_bytes(b"other bytes")
    told = r"weights.npy is damaged: its checksum is not the one in the history: it stays out of use"
    with pytest.raises(InputError, match=told):
        rollback(read_store(url))
    assert read_store(url).current.version == 2


def test_what_a_link_leads_to_is_not_removed(tmp_path: Path) -> None:
    url = filled(tmp_path / "store", 3)
    folder = Path(resolve(f"{url}@1"))
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    with pytest.raises(InputError, match="is a link to another folder"):
        remove_old_versions(read_store(url), 1)
    assert sorted(path.name for path in elsewhere.iterdir()) == sorted(content(0))
    assert len(stored_version_numbers(read_store(url))) == 3


def test_local_paths_are_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("~", "file:m", "a::b", "m?"):
        files.write_bytes(f"{name}/x", b"1")
        assert (tmp_path / name / "x").read_bytes() == files.read_bytes(f"{name}/x") == b"1"


# ---- the lease of a store: one holder at a time, on a folder and on S3, and none for ever -----


def test_of_many_at_once_one_holds_it_and_then_another(tmp_path: Path) -> None:
    url, barrier, ended = str(tmp_path / "store"), threading.Barrier(8), threading.Event()
    won: list[int] = []
    lost: list[str] = []

    def work(number: int) -> None:
        barrier.wait()
        try:
            with lease(url, "a run") as held:
                won.append(held.number)
                ended.wait(20)
        except InputError as error:
            lost.append(str(error))
            if len(lost) == 7:
                ended.set()

    at_once(work)
    assert (won, len(lost)) == ([1], 7)
    with lease(url, "a run") as held:
        assert held.number == 2
        held.check()


def test_a_holder_that_gives_no_sign_of_life_is_replaced_and_learns_it(tmp_path, monkeypatch):
    url, now = str(tmp_path / "store"), [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    with ExitStack() as stack:
        first = stack.enter_context(lease(url, "the first run"))
        now[0] += 200.0
        with pytest.raises(InputError, match="in use by the first run on"), lease(url, "the second"):
            pass
        first.renew()
        now[0] += 200.0
        with pytest.raises(InputError, match="in use by the first run on"), lease(url, "the second"):
            pass
        now[0] += 101.0
        with lease(url, "the second") as second:
            second.check()
            with pytest.raises(InputError, match="did not renew it in time"):
                first.check()


def test_a_lease_is_renewed_while_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr("aucdist.store.RENEWAL_SECONDS", 0.01)
    alive = tmp_path / "store" / "leases" / "00000001.alive"
    with lease(str(tmp_path / "store"), "a run"):
        while not alive.exists():
            pass
    assert (tmp_path / "store" / "leases" / "00000001.done").exists()


def test_on_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    with mock_server() as endpoint, new_connections():
        point_to(monkeypatch, endpoint, *MOCK)
        s3fs.S3FileSystem().mkdir("leases")
        url = "s3://leases/models/churn"
        with lease(url, "a run") as held, pytest.raises(InputError, match="in use by a run on"), lease(url, "another"):
            pass
        held.check()
        with lease(url, "another") as after:
            assert after.number == 2


@pytest.mark.parametrize(("ahead", "taken"), [(100.0, False), (10.0**6, True), (1e300, True)])
def test_a_lease_that_is_dated_in_the_future_does_not_block_for_ever(tmp_path, monkeypatch, ahead, taken):
    url, now = str(tmp_path), [10.0**9 + ahead]
    monkeypatch.setattr("time.time", lambda: now[0])
    with lease(url, "a run"):
        now[0] = 10.0**9
        if taken:
            with lease(url, "another") as held:
                assert held.number == 2
        else:
            with pytest.raises(InputError, match="is in use by a run"), lease(url, "another"):
                pass


@pytest.mark.parametrize(
    "data", [b"{}", b"[]", b"no JSON", b'{"time": "now"}', b'{"time": NaN}', b"[" * 10**5, b"\xff"]
)
@pytest.mark.parametrize("name", ["00000001.json", "00000001.alive"])
def test_a_damaged_lease_is_named(tmp_path: Path, data: bytes, name: str) -> None:
    with lease(str(tmp_path), "a run") as held:
        held.renew()
        (tmp_path / "leases" / name).write_bytes(data)
        said = f"it is not known whether a run is using .*: .*{name} is damaged"
        with pytest.raises(InputError, match=said), lease(str(tmp_path), "b"):
            pass
