"""On a real Prefect server: a night as a flow, and the automation by which an alarm starts one."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.nights import day, night

from flows.up import local_deployments


def until(holds: Callable[[], Any]) -> Any:
    """Wait until something holds, and return it."""
    end = time.monotonic() + 120
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.2)
    return found


@pytest.mark.slow
def test_a_night_is_a_flow_and_an_alarm_starts_one(tmp_path: Path, prefect_server: str) -> None:
    from prefect.client.orchestration import get_client

    from flows.keep_current import KeepCurrentConfig
    from flows.orchestration.flows import keep_current, watch
    from flows.watch import WatchConfig

    for number in range(3):
        day(tmp_path, number)
    config = KeepCurrentConfig.model_validate(yaml.safe_load(night(tmp_path).read_text(encoding="utf-8")))
    config = config.model_copy(update={"store": str(tmp_path / "models" / "digits")})
    result = keep_current(config)
    assert result["promotion"]["version"] == 1

    (deployment,) = [one for one in local_deployments() if one.flow_name == "keep-current"]
    assert deployment.concurrency_limit == 1
    served = deployment.apply()
    with get_client(sync_client=True) as client:
        (schedule,) = client.read_deployment_schedules(served)
        assert not schedule.active
        assert {a.key for a in client.read_artifacts()} >= {"keep-current"}

        moved = tmp_path / "moved"
        moved.mkdir()
        rows = {"source": {"source": str(day(moved, 9, shift=3.0)), "format": "parquet"}}
        watching = WatchConfig.model_validate({"model": config.store, "data": rows})
        time.sleep(2.0)  # automations are loaded by the server's trigger service

        def started() -> list[Any]:
            return [run for run in client.read_flow_runs() if run.deployment_id == served]

        assert started() == []
        assert watch(watching)["alarms"]
        (run,) = until(started)
        assert run.created_by is not None
        assert run.created_by.type == "AUTOMATION"
        assert "watch" in {a.key for a in client.read_artifacts()}
