"""A kernel is compiled by one process, and the others load it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

from aucdist.kernels import compiling
from aucdist.kernels.compiling import kernel

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def double(x: Any) -> Any:
    return x + x


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Make the kernel anew, as in another process, with one cache for all."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return lambda: kernel(double)


def lock_of(compiled: Any) -> Path:
    return Path(compiled.stats.cache_path) / f"{__name__}.double.lock"


def test_a_kernel_that_another_process_compiles_is_loaded(make, monkeypatch):
    here, there, lock, asked = make(), make(), compiling._try_lock, []

    def busy_once(file: Any) -> bool:
        asked.append(file)
        if len(asked) == 1:  # another process compiles meanwhile
            monkeypatch.setattr(compiling, "_try_lock", lambda file: True)
            assert there(1.5) == 3.0
            monkeypatch.setattr(compiling, "_try_lock", busy_once)
            return False
        return lock(file)

    monkeypatch.setattr(compiling, "_try_lock", busy_once)
    assert here(2.5) == 5.0
    assert len(asked) == 2
    assert sum(there.stats.cache_misses.values()) == 1
    assert (sum(here.stats.cache_hits.values()), sum(here.stats.cache_misses.values())) == (1, 0)


def test_the_lock_is_held_while_a_kernel_is_compiled(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, lock, seen = make(), compiling._try_lock, []
    compile_or_load = type(compiled).compile

    def looking(self: Any, signature: Any) -> Any:
        with lock_of(compiled).open("a") as file:
            seen.append(lock(file))
        return compile_or_load(self, signature)

    monkeypatch.setattr(type(compiled), "compile", looking)
    compiled = make()
    assert compiled(1.5) == 3.0
    assert seen == [False]
    with lock_of(compiled).open("a") as file:
        assert lock(file)


def test_the_lock_is_free_after_an_error(make: Callable[[], Any]) -> None:
    compiled = make()
    with pytest.raises(numba.TypingError):
        compiled(None)
    with lock_of(compiled).open("a") as file:
        assert compiling._try_lock(file)


def test_a_process_waits_no_longer_than_its_limit(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = make()
    monkeypatch.setattr(compiling, "MAX_WAIT", 0.0)
    with lock_of(compiled).open("a") as file:
        assert compiling._try_lock(file)
        assert compiled(1.5) == 3.0


def test_a_folder_without_locks_is_used_all_the_same(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(compiling.fcntl, "flock", refuse)
    assert make()(1.5) == 3.0


def test_an_edit_compiles_again_what_it_can_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that import the edited one, directly or not, have another folder; the others keep theirs."""
    for name, line in {"base": "", "over": "base", "top": "over", "other": ""}.items():
        (tmp_path / f"{name}.py").write_text(f"from aucdist.{line} import f\n" if line else "f = 1\n")
    monkeypatch.setattr(compiling, "PACKAGE", tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def folders() -> dict[str, Path]:
        compiling._own_folder.cache_clear()
        compiling._sources.cache_clear()
        return {
            name: compiling.kernel_folder(str(tmp_path / f"{name}.py")) for name in ("base", "over", "top", "other")
        }

    before = folders()
    (tmp_path / "base.py").write_text("f = 2\n")
    after = folders()
    compiling._own_folder.cache_clear()
    compiling._sources.cache_clear()
    assert {name for name in before if before[name] != after[name]} == {"base", "over", "top"}
    assert set(before.values()) <= set((tmp_path / "aucdist" / "kernels").iterdir())
