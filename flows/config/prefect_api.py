"""Find out whether Prefect has an API configured, without importing Prefect, which takes a second or more."""

import os
import tomllib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from aucdist.errors import InputError, Json

KEY = "PREFECT_API_URL"


def api_configured() -> bool:
    """Return whether the settings that Prefect would read in this folder name an API.

    They are read in Prefect's order, and the first counts: the environment, ``.env``, ``prefect.toml`` and
    ``pyproject.toml`` of the working folder, and the active profile. An empty ``PREFECT_API_URL`` means none, whatever
    the others name.
    """
    if KEY in os.environ:
        return bool(os.environ[KEY])
    dotenv = _dotenv(Path(".env"))
    if KEY in dotenv:
        return bool(dotenv[KEY])
    tables = (_toml(Path("prefect.toml")), _toml(Path("pyproject.toml")).get("tool", {}).get("prefect", {}))
    for table in tables:
        if url := table.get("api", {}).get("url"):
            return bool(url)
    return bool(_active_profile(dotenv, tables).get(KEY))


def as_user_error(error: Exception) -> Exception:
    """Return the error of a flow. Errors of Prefect's client about its server become InputErrors with a remedy."""
    text = str(error)
    if text.startswith("Failed to reach API at"):
        where = text.removeprefix("Failed to reach API at ").rstrip("/")
        return InputError(
            f"no Prefect server answers at {where}. Start one with `aucdist up`, or unset {KEY} to run without Prefect"
        )
    if text.startswith("Found incompatible versions"):
        return InputError(
            f"the Prefect server and the installed Prefect have incompatible versions: install the same on both sides. {text}"
        )
    if "401 Unauthorized" in text:
        return InputError("Prefect's server does not accept PREFECT_API_AUTH_STRING (user:password), or it is not set")
    return error


def _active_profile(dotenv: dict[str, str], tables: tuple[Json, ...]) -> Json:
    """Return the settings of the active profile; without a file of profiles, those of Prefect's default profile."""
    named = [os.environ.get("PREFECT_PROFILES_PATH"), dotenv.get("PREFECT_PROFILES_PATH")]
    named += [table.get("profiles_path") for table in tables]
    home, own = os.environ.get("PREFECT_HOME"), Path()
    with suppress(RuntimeError):  # the user has no home, as in a container
        own = Path.home() / ".prefect"
    path = next((Path(p) for p in named if p), Path(home or own) / "profiles.toml")
    if not path.is_file():
        prefect = find_spec("prefect")
        if home or any(named) or prefect is None or prefect.origin is None:
            return {}
        path = Path(prefect.origin).parent / "settings" / "profiles.toml"
    profiles = _toml(path)
    active = os.environ.get("PREFECT_PROFILE") or profiles.get("active", "")
    return profiles.get("profiles", {}).get(active, {})


def _toml(path: Path) -> Json:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}  # Prefect itself complains about a broken file when it is used


def _dotenv(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.removeprefix("export ").partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip().strip("'\"") for key, _, value in pairs}
