"""Configures S3 by environment variables, of this process and of the workers that it starts."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from aucdist.data.storage.s3 import forget_connections
from aucdist.data.storage.urls import reveal
from aucdist.errors import InputError
from flows.config.cluster import ClusterConfig, LocalClusterConfig, NoCluster, S3Config
from flows.config.prefect_api import api_configured
from flows.progress.console import RunObserver

IDENTITY = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "profile_name": "AWS_PROFILE",
}
REGION, ENDPOINT = "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3"


@contextmanager
def s3_as_configured(config: S3Config, cluster: ClusterConfig, observer: RunObserver) -> Iterator[None]:
    """Set the environment variables of an S3 configuration while the context lasts.

    `cluster`: the cluster of the run; workers that are already running, or in pods, have their own environment.
    Raises InputError if the Prefect block does not exist or has no credentials.
    """
    changes = environment_of(config)
    if changes and not isinstance(cluster, NoCluster | LocalClusterConfig):
        observer.note("`s3` configures this process: the workers reach S3 as their own environment says")
    before = {name: os.environ.get(name) for name in changes}
    _set_environment(changes)
    try:
        yield
    finally:
        _set_environment(before)


def environment_of(config: S3Config) -> dict[str, str | None]:
    """Return the environment variables to set, or with None to remove."""
    changes: dict[str, str | None] = {}
    if config.block is not None:
        changes |= _of_block(config.block)
    elif config.profile is not None:
        # Keys in the environment would take precedence over the profile.
        changes |= dict.fromkeys(IDENTITY.values()) | {"AWS_PROFILE": config.profile}
    named = {
        ENDPOINT: reveal(config.endpoint or ""),
        REGION: config.region,
        "AUCDIST_S3_ANONYMOUS": ",".join(config.anonymous),
        "AUCDIST_S3_REQUESTER_PAYS": ",".join(config.requester_pays),
    }
    return changes | {name: value for name, value in named.items() if value}


def _of_block(name: str) -> dict[str, str | None]:
    """Return the environment variables with the credentials of a Prefect block, which are stored nowhere else."""
    if not api_configured():
        raise InputError(f"s3.block is {name!r}, but no Prefect server is configured: see PREFECT_API_URL")
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    kind, _, block = name.partition("/")
    try:
        with get_client(sync_client=True) as client:
            content: dict[str, Any] = client.read_block_document_by_name(block, kind, include_secrets=True).data
    except ObjectNotFound:
        raise InputError(f"s3.block is {name!r}, but the Prefect server has no such block") from None
    if kind == "secret":
        value = content.get("value")
        with suppress(json.JSONDecodeError):
            value = json.loads(value) if isinstance(value, str) else value
        if not isinstance(value, dict):
            raise InputError(
                f"s3.block is {name!r}, but that secret is not a JSON object with the keys {', '.join(IDENTITY)}"
            )
        content = value
    more = {
        REGION: content.get("region_name"),
        ENDPOINT: (content.get("aws_client_parameters") or {}).get("endpoint_url"),
    }
    given = {variable: content.get(key) for key, variable in IDENTITY.items()}
    if not any(given.values()):
        raise InputError(f"s3.block is {name!r}, but that block has no credentials: none of {', '.join(IDENTITY)}")
    return given | {variable: value for variable, value in more.items() if value}


def _set_environment(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if changes:
        forget_connections()
