"""A model store: one winner of two changes at once, whole versions after a kill, nothing overwritten."""

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucdist.data.own_files import parse_checked
from aucdist.data.storage import files
from aucdist.errors import InputError
from aucdist.store import (
    Change,
    check_name,
    keep,
    present,
    promote,
    read_store,
    resolve,
    rollback,
)

MARKER = "model.json"


def content(number: int) -> dict[str, bytes]:
    return {MARKER: b"{%d}" % number, "weights.npy": bytes([number % 256]) * 100}


def filled(url: Path, n: int) -> str:
    for number in range(n):
        promote(read_store(str(url)), content(number), MARKER, {"run": f"run-{number}"})
    return str(url)


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
    with pytest.raises(InputError, match=r"weights.npy is damaged, because its checksum is wrong: it stays out of use"):
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
