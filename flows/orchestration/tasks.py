"""Stages as Prefect tasks."""

from collections.abc import Callable
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task


def run_as_task(name: str, stage: Callable[..., Any], *args: Any, retry: bool = False) -> Any:
    """Run a stage as a Prefect task and return its result; see `flows.compute.stages.StageRunner`.

    Arguments and result bypass Prefect, because both hold rows: it would walk through the one and persist the other.
    """

    def body() -> Any:
        return stage(*args)

    body.__doc__ = stage.__doc__
    make_task = task(
        name=name, retries=2 if retry else 0, retry_delay_seconds=1, retry_condition_fn=_failed_in_storage,
        cache_policy=NO_CACHE, persist_result=False,
    )  # fmt: skip
    return make_task(body)()


def _failed_in_storage(task: Task[..., Any], run: TaskRun, state: State[Any]) -> bool:
    """Tell whether a task failed by an error of storage, which may pass, and not by wrong input."""
    try:
        state.result(raise_on_failure=True)
    except OSError:
        return True
    except Exception:
        return False
    return False
