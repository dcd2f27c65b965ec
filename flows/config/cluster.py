"""Configuration of the cluster, the access to S3 and the checkpoints of a run.

The module also finds out whether an API of Prefect is configured. If possible, it does so without importing Prefect, because
the import takes seconds.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from aucdist.data.own_files import pattern_of
from aucdist.data.storage.urls import Location
from aucdist.errors import InputError, Json
from flows.config.loading import RUN_NAME, AtLeastOne, Cli, CountOption, Positive, Strict, Text, TextList, named_cluster

DNS_NAME = pattern_of("a name of small letters, digits and -", r"^[a-z]([a-z0-9-]*[a-z0-9])?$")
CPU = pattern_of("a number of cores, such as 2 or 500m", r"^[0-9]+(\.[0-9]+|m)?$")
MEMORY = pattern_of("a number of bytes with a unit, such as 4Gi", r"^[0-9]+(\.[0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$")


class NoCluster(Strict):
    """Everything is computed in this process, and several threads share the work of a fit."""

    kind: Literal["none"] = "none"
    """Everything is computed in this process."""
    n_jobs: int = -1
    """The number of threads that work on the blocks of a fit; -1 means one for each core. The results are the same for
    any number."""

    def _check(self) -> None:
        from aucdist.engine.steps import number_of_threads  # imported here, because it loads SciPy and Numba

        number_of_threads(self.n_jobs)  # raises an error if the number is not valid


class LocalClusterConfig(Strict):
    """Worker processes on this machine."""

    kind: Literal["local"]
    """Worker processes are started on this machine."""
    workers: AtLeastOne = 2
    """The number of processes."""
    threads: AtLeastOne = 1
    """The number of threads of each process."""
    memory_limit: str = Field(
        default="auto",
        pattern=pattern_of(
            "`auto` or a number with a unit, such as 2GiB", r"(?i)^(auto|[0-9]+([.][0-9]*)? ?([kmgtp]i?)?b?)$"
        ),
    )
    """The memory of each process: `auto`, or a number with a unit, such as 2GiB."""


class TlsFiles(Strict):
    """The files of an encrypted connection, in PEM."""

    ca: str
    """The certificate of the authority that signed the certificates of client, scheduler and workers."""
    cert: str
    """The certificate of the client, which the authority has signed."""
    key: str
    """The private key of the client's certificate."""


class AddressConfig(Strict):
    """A Dask scheduler that is running already."""

    kind: Literal["address"]
    """The workers are those of a scheduler that is already running."""
    address: str = Field(
        pattern=pattern_of(
            "tcp:// or tls:// with host and port, such as tcp://scheduler:8786",
            r"^(tcp|tls)://(\[[0-9A-Za-z:.%]+\]|[^\s\[\]:@/]+):[0-9]{1,5}$",
        )
    )
    """The address of the scheduler, such as tcp://scheduler:8786."""
    scratch: Location
    """A folder or URL that every worker can read. The rows are written there for the fit."""
    workers: AtLeastOne = 1
    """The number of workers to wait for before work starts."""
    timeout: Positive = 30
    """The number of seconds to wait for the scheduler, and then for the workers."""
    tls: TlsFiles | None = None
    """The files of the encrypted connection, for tls:// addresses."""

    def _check(self) -> None:
        if self.address.startswith("tls://") != (self.tls is not None):
            raise InputError(
                "`tls` (ca, cert, key) belongs to an address that starts with tls://, and only there: change the "
                "address, or leave `tls` out"
            )


class Adaptive(Strict):
    """A cluster that scales by its load between fits."""

    minimum: AtLeastOne
    """The number of workers of an idle cluster."""
    maximum: AtLeastOne
    """The largest number of workers."""

    def _check(self) -> None:
        if self.minimum > self.maximum:
            raise InputError(f"minimum ({self.minimum}) is more than maximum ({self.maximum}): swap them")


class Resources(Strict):
    """What a pod requests; its memory is also its limit."""

    cpu: str = Field(default="1", pattern=CPU)
    """The number of cores, such as 2 or 500m."""
    memory: str = Field(default="2Gi", pattern=MEMORY)
    """The memory, such as 4Gi."""


class KubernetesConfig(Strict):
    """A Dask cluster on Kubernetes, created by the Dask operator for one run and removed after it."""

    kind: Literal["kubernetes"]
    """Worker pods are started on Kubernetes."""
    image: Text
    """The image of scheduler and workers. It has to be the image of the flow itself."""
    scratch: Location
    """A URL that every worker can read, such as s3://bucket/scratch."""
    namespace: str = Field(default="aucdist", pattern=DNS_NAME)
    """The namespace of the cluster."""
    name: str | None = Field(default=None, pattern=DNS_NAME, max_length=53)
    """The name of the cluster. By default it is made from the name of the run."""
    workers: AtLeastOne | Adaptive = 2
    """A number, or {minimum, maximum}. A fit then has one worker for each block within these limits, from start to end.
    """
    threads: AtLeastOne = 1
    """The number of threads of each worker."""
    worker: Resources = Field(default_factory=Resources)
    """The resources of the pod of each worker."""
    scheduler: Resources = Field(default_factory=Resources)
    """The resources of the pod of the scheduler."""
    service_account: str = "aucdist-dask"
    """The service account of scheduler and workers. It needs no permissions."""
    secrets: TextList
    """Secrets whose entries become environment variables, such as the credentials of S3."""
    tls: str = ""
    """A Secret with ca.crt, tls.crt and tls.key. If it is empty, connections are not encrypted."""
    node_selector: dict[str, str] = Field(default={})
    """Labels of the nodes that may run the pods."""
    tolerations: list[Json] = Field(default=[])
    """Taints of nodes that the pods tolerate."""
    timeout: Positive = 300
    """The number of seconds to wait for the scheduler, and then for the workers."""

    @property
    def minimum(self) -> int:
        """Workers to start with."""
        return self.workers.minimum if isinstance(self.workers, Adaptive) else self.workers


ClusterConfig = Annotated[
    NoCluster | LocalClusterConfig | AddressConfig | KubernetesConfig,
    Field(discriminator="kind"),
    BeforeValidator(named_cluster),
]
"""A cluster, which may also be given by the name of a file."""
ClusterOption = Annotated[ClusterConfig, Field(default_factory=NoCluster), Cli(metavar="NAME")]


# ---- S3 ----------------------------------------------------------------------------------------------------------------


class S3Config(Strict):
    """How to reach S3. By default the environment decides, as for other programs.

    There is no key for a secret: credentials are found in the environment, the profile, the identity of the pod or
    machine, or a Prefect block. The workers of a cluster that is already running have their own environment.
    """

    endpoint: Location | None = None
    """The URL of a server that is not the one of AWS."""
    region: str | None = None
    """The region, such as eu-central-1."""
    profile: str | None = None
    """A profile of the AWS configuration files."""
    block: str | None = Field(
        default=None,
        pattern=pattern_of("aws-credentials/NAME or secret/NAME", r"^(aws-credentials|secret)/[a-z0-9-]+$"),
    )
    """A Prefect block with credentials: aws-credentials/<name>, or secret/<name> with the same keys in JSON."""
    anonymous: TextList
    """A list of buckets that are read without credentials."""
    requester_pays: TextList
    """A list of buckets for which the reader pays the transfer."""

    def _check(self) -> None:
        if self.profile is not None and self.block is not None:
            raise InputError("`profile` and `block` are both given, and each names the credentials: remove one of them")


S3Option = Annotated[S3Config, Field(default_factory=S3Config), Cli(hidden=True)]


# ---- checkpoints -------------------------------------------------------------------------------------------------------


class CheckpointConfig(Strict):
    """Checkpoints of the fit. A run that was killed resumes from the last one when it is started again, with the same result."""

    seconds: Positive = 60
    """The number of seconds between two checkpoints."""
    rounds: CountOption = None
    """The number of rounds of the solver between two checkpoints."""
    url: Location | None = None
    """A folder or URL that every worker can write to. By default it is `checkpoints` below the scratch of the cluster,
    or `.checkpoints` below the output."""
    id: str | None = Field(default=None, pattern=RUN_NAME, max_length=100)
    """The name of the fit. By default it is a digest of everything that the result depends on, so that repeating the
    command resumes the run."""
    attempts: AtLeastOne = 3
    """The largest number of attempts if the cluster is lost."""


API_VARIABLE = "PREFECT_API_URL"


def api_configured() -> bool:
    """Return whether the settings that Prefect reads in this folder name an API.

    An empty ``PREFECT_API_URL`` means that they do not.

    Importing Prefect takes seconds, so this is only done if one of its files may name an API.
    """
    if API_VARIABLE in os.environ:
        return bool(os.environ[API_VARIABLE])
    home = os.environ.get("PREFECT_HOME") or "~/.prefect"
    profiles = os.environ.get("PREFECT_PROFILES_PATH") or f"{home}/profiles.toml"
    marks = {
        ".env": "PREFECT_",
        "prefect.toml": "url|profiles_path",
        "pyproject.toml": "tool.prefect",
        profiles: API_VARIABLE,
    }
    for file, mark in marks.items():
        # The file may not exist. If it is damaged, Prefect itself reports this when it is used.
        with suppress(Exception):
            if re.search(mark, Path(file).expanduser().read_text(encoding="utf-8")):
                from prefect.settings import Settings

                return bool(Settings().api.url)
    return False


def as_user_error(error: Exception) -> Exception:
    """Return the error of a flow. Errors of Prefect's client about its server become InputErrors with a remedy."""
    text = str(error)
    if text.startswith("Failed to reach API at"):
        where = text.removeprefix("Failed to reach API at ").rstrip("/")
        return InputError(
            f"no Prefect server answers at {where}. Start one with `aucdist up`, or unset {API_VARIABLE} to run without Prefect"
        )
    if text.startswith("Found incompatible versions"):
        return InputError(
            f"the Prefect server and the installed Prefect have incompatible versions: install the same on both sides. {text}"
        )
    if "401 Unauthorized" in text:
        return InputError("Prefect's server does not accept PREFECT_API_AUTH_STRING (user:password), or it is not set")
    return error
