"""Prefect's server and its blocks, for tests."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from support.processes import free_port


@contextmanager
def prefect_server(home: Path) -> Iterator[str]:
    """Start a server as `aucdist up` does, with its files in a folder, and yield the URL of its API.

    The server of Prefect's test harness has no scheduler and no automations.
    """
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from flows.up import _server

    port = free_port()
    url = f"http://127.0.0.1:{port}/api"
    with ExitStack() as stack:
        with mock.patch.dict(os.environ, PREFECT_HOME=str(home)):
            stack.enter_context(_server(port))
        stack.enter_context(temporary_settings({PREFECT_API_URL: url}))
        stack.callback(forget_server)
        forget_server()
        yield url


def forget_server() -> None:
    """Let Prefect send events to the server of the current settings.

    The thread that sends them stays with the first server it was started for, which may be one that a test made up. A server
    without the events of its runs does not know their tasks.
    """
    from prefect.events.worker import EventsWorker

    EventsWorker.drain_all(timeout=0)


def have_blocks(monkeypatch: pytest.MonkeyPatch, documents: dict[tuple[str, str], Any]) -> None:
    """Let runs find blocks, by type and name, as if a server had them."""

    def read(name: str, block_type_slug: str, include_secrets: bool) -> SimpleNamespace:
        from prefect.exceptions import ObjectNotFound

        assert include_secrets
        if (block_type_slug, name) not in documents:
            raise ObjectNotFound(RuntimeError("404"))
        return SimpleNamespace(data=documents[block_type_slug, name])

    client = SimpleNamespace(read_block_document_by_name=read)
    monkeypatch.setattr("prefect.client.orchestration.get_client", lambda sync_client: nullcontext(client))
    monkeypatch.setattr("flows.compute.clusters.api_configured", lambda: True)
