"""Finding out whether Prefect has an API: the same answer as Prefect's own settings."""

import subprocess
import sys
from pathlib import Path

import pytest

from aucdist.errors import InputError
from flows.config.prefect_api import api_configured, explained

URL = "http://127.0.0.1:4200/api"
PROFILES = f"""
active = "here"
[profiles.here]
PREFECT_API_URL = "{URL}"
[profiles.nowhere]
PREFECT_LOGGING_LEVEL = "INFO"
"""
CASES: dict[str, tuple[dict[str, str], dict[str, str], bool]] = {  # environment, files, answer
    "nothing": ({}, {}, False),
    "environment": ({"PREFECT_API_URL": URL}, {}, True),
    "empty environment wins": ({"PREFECT_API_URL": ""}, {"prefect.toml": f'[api]\nurl = "{URL}"\n'}, False),
    "dotenv": ({}, {".env": f"PREFECT_API_URL={URL}\n"}, True),
    "prefect.toml": ({}, {"prefect.toml": f'[api]\nurl = "{URL}"\n'}, True),
    "prefect.toml, dotted": ({}, {"prefect.toml": f'api.url = "{URL}"\n'}, True),
    "pyproject.toml": ({}, {"pyproject.toml": f'[tool.prefect.api]\nurl = "{URL}"\n'}, True),
    "another key": ({}, {"prefect.toml": '[logging]\nlevel = "INFO"\n'}, False),
    "active profile": ({}, {"home/profiles.toml": PROFILES}, True),
    "other profile": ({"PREFECT_PROFILE": "nowhere"}, {"home/profiles.toml": PROFILES}, False),
    "path of profiles": ({"PREFECT_PROFILES_PATH": "p.toml"}, {"p.toml": PROFILES}, True),
}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> bool:
    environment, files, answer = CASES[request.param]
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for key in ("PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_PROFILES_PATH"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    monkeypatch.chdir(tmp_path)
    return answer


@pytest.mark.parametrize("scene", CASES, indirect=True)
def test_agrees_with_prefect(scene: bool) -> None:
    from prefect.settings import Settings

    assert api_configured() is scene
    assert bool(Settings().api.url) is scene


def test_broken_file_is_left_to_prefect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prefect.toml").write_text("[api\n")
    monkeypatch.chdir(tmp_path)
    assert api_configured() is False


def test_does_not_import_prefect() -> None:
    code = "import sys, flows.config.prefect_api as p; p.api_configured(); sys.exit('prefect' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Failed to reach API at http://127.0.0.1:1/api/",
            "no Prefect server answers at http://127.0.0.1:1/api. Start one by",
        ),
        ("Found incompatible versions: client: 3.8", "do not fit. Found incompatible versions: client: 3.8"),
        ("Client error '401 Unauthorized' for url", "does not accept PREFECT_API_AUTH_STRING"),
    ],
)
def test_errors_about_the_server_say_what_to_do(text: str, message: str) -> None:
    error = explained(RuntimeError(text))
    assert isinstance(error, InputError)
    assert message in str(error)


def test_other_errors_stay_as_they_are() -> None:
    error = RuntimeError("no memory")
    assert explained(error) is error
