"""Finding out whether Prefect has an API: the same answer as Prefect's own settings."""

from pathlib import Path

import pytest

from flows.config.cluster import api_configured, as_user_error

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


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_prefect(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.settings import Settings

    environment, files, answer = CASES[case]
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
    assert (api_configured(), bool(Settings().api.url)) == (answer, answer)


def test_broken_file_is_left_to_prefect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prefect.toml").write_text("[api\n")
    monkeypatch.chdir(tmp_path)
    assert api_configured() is False


def test_errors_that_are_not_about_the_server_stay_as_they_are() -> None:
    error = RuntimeError("no memory")
    assert as_user_error(error) is error
