"""The lease of a store: one holder at a time, on a folder and on S3, and none for ever."""

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
import s3fs
from support.s3_servers import MOCK, mock_server, new_connections, point_to

from aucdist.errors import InputError
from aucdist.store import lease


def test_of_many_at_once_one_holds_it_and_then_another(tmp_path: Path) -> None:
    url, barrier, ended = str(tmp_path / "store"), threading.Barrier(8), threading.Event()
    won: list[int] = []
    lost: list[str] = []

    def work() -> None:
        barrier.wait()
        try:
            with lease(url, "a run") as held:
                won.append(held.number)
                ended.wait(20)
        except InputError as error:
            lost.append(str(error))
            if len(lost) == 7:
                ended.set()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (won, len(lost)) == ([1], 7)
    with lease(url, "a run") as held:
        assert held.number == 2
        held.check()


def test_a_holder_that_gives_no_sign_of_life_is_replaced_and_learns_it(tmp_path: Path) -> None:
    url, now = str(tmp_path / "store"), [1000.0]
    clock = lambda: now[0]  # noqa: E731
    with ExitStack() as stack:
        first = stack.enter_context(lease(url, "the first run", renewed=1e6, clock=clock))
        now[0] += 200.0
        with pytest.raises(InputError, match="in use by the first run on"), lease(url, "the second", clock=clock):
            pass
        first.renew()
        now[0] += 200.0
        with pytest.raises(InputError, match="in use by the first run on"), lease(url, "the second", clock=clock):
            pass
        now[0] += 101.0
        with lease(url, "the second", clock=clock) as second:
            second.check()
            with pytest.raises(InputError, match="did not renew its lease"):
                first.check()


def test_a_lease_is_renewed_while_it_is_held(tmp_path: Path) -> None:
    alive = tmp_path / "store" / "leases" / "00000001.alive"
    with lease(str(tmp_path / "store"), "a run", renewed=0.01):
        while not alive.exists():
            pass
    assert (tmp_path / "store" / "leases" / "00000001.done").exists()


def test_on_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    with mock_server() as endpoint, new_connections():
        point_to(monkeypatch, endpoint, *MOCK)
        s3fs.S3FileSystem().mkdir("leases")
        url = "s3://leases/models/churn"
        with (
            lease(url, "a run") as held,
            pytest.raises(InputError, match="in use by a run on"),
            lease(url, "another"),
        ):
            pass
        held.check()
        with lease(url, "another") as after:
            assert after.number == 2


@pytest.mark.parametrize(("ahead", "taken"), [(100.0, False), (10.0**6, True), (1e300, True)])
def test_a_lease_that_is_dated_in_the_future_does_not_block_for_ever(tmp_path: Path, ahead: float, taken: bool) -> None:
    url, now = str(tmp_path), 10.0**9
    with lease(url, "a run", clock=lambda: now + ahead):
        if taken:
            with lease(url, "another", clock=lambda: now) as held:
                assert held.number == 2
        else:
            with pytest.raises(InputError, match="is in use by a run"), lease(url, "another", clock=lambda: now):
                pass


@pytest.mark.parametrize(
    "data", [b"{}", b"[]", b"no JSON", b'{"time": "now"}', b'{"time": NaN}', b"[" * 10**5, b"\xff"]
)
@pytest.mark.parametrize("name", ["00000001.json", "00000001.alive"])
def test_a_damaged_lease_is_named(tmp_path: Path, data: bytes, name: str) -> None:
    with lease(str(tmp_path), "a run") as held:
        held.renew()
        (tmp_path / "leases" / name).write_bytes(data)
        with (
            pytest.raises(InputError, match=f"who holds .* is unknown: .*{name} is damaged"),
            lease(str(tmp_path), "b"),
        ):
            pass
