"""Configuration of where a run works: its cluster, its access to S3, and its checkpoints."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from aucdist.data.storage.urls import Location
from aucdist.engine.steps import number_of_threads
from aucdist.engine.workers import has_bokeh, no_bokeh
from aucdist.errors import InputError
from flows.config.base import NAME, Strict

DNS_NAME = r"^[a-z]([a-z0-9-]*[a-z0-9])?$"
CPU = r"^[0-9]+(\.[0-9]+|m)?$"
MEMORY = r"^[0-9]+(\.[0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$"


class NoCluster(Strict):
    """Everything in this process."""

    kind: Literal["none"] = "none"


class ThreadsHere(NoCluster):
    """Everything in this process; several threads share the work of a fit."""

    n_jobs: int = Field(
        default=-1,
        description="Threads that work on the blocks of a fit, with the same results for any number; -1: one for each core",
    )

    @field_validator("n_jobs")
    @classmethod
    def _is_a_number_of_threads(cls, n_jobs: int) -> int:
        number_of_threads(n_jobs)
        return n_jobs


class LocalClusterConfig(Strict):
    """Worker processes on this machine."""

    kind: Literal["local"]
    workers: int = Field(default=2, ge=1, description="Processes")
    threads: int = Field(default=1, ge=1, description="Threads of each process")
    memory_limit: str = Field(
        default="auto",
        pattern=r"(?i)^(auto|[0-9]+([.][0-9]*)? ?([kmgtp]i?)?b?)$",
        description="Memory of each process: `auto`, or a number with a unit, such as 2GiB",
    )


class TlsFiles(Strict):
    """The files of an encrypted connection, in PEM."""

    ca: str = Field(description="Certificate of the authority that signed those of client, scheduler and workers")
    cert: str = Field(description="Certificate of the client, signed by the authority")
    key: str = Field(description="Key of that certificate")


class AddressConfig(Strict):
    """A Dask scheduler that is running already."""

    kind: Literal["address"]
    address: str = Field(
        pattern=r"^(tcp|tls)://(\[[0-9A-Za-z:.%]+\]|[^\s\[\]:@/]+):[0-9]{1,5}$",
        description="Such as tcp://scheduler:8786",
    )
    scratch: Location = Field(
        description="A folder or URL that every worker can read: the rows are written there for the fit"
    )
    workers: int = Field(default=1, ge=1, description="Number of workers to wait for before work starts")
    timeout: float = Field(default=30, gt=0, description="Seconds to wait for the scheduler, and then for workers")
    tls: TlsFiles | None = Field(default=None, description="Files of the encrypted connection, for tls:// addresses")

    @model_validator(mode="after")
    def _tls_as_the_address_says(self) -> "AddressConfig":
        if self.address.startswith("tls://") != (self.tls is not None):
            raise InputError("`tls` (ca, cert, key) belongs to an address that starts with tls://, and only there")
        return self


class Adaptive(Strict):
    """A cluster that scales by its load between fits."""

    minimum: int = Field(ge=1, description="Workers of an idle cluster")
    maximum: int = Field(ge=1, description="Workers at most")

    @model_validator(mode="after")
    def _in_order(self) -> "Adaptive":
        if self.minimum > self.maximum:
            raise InputError(f"minimum ({self.minimum}) is more than maximum ({self.maximum})")
        return self


class Resources(Strict):
    """What a pod requests; its memory is also its limit."""

    cpu: str = Field(default="1", pattern=CPU, description="Cores, such as 2 or 500m")
    memory: str = Field(default="2Gi", pattern=MEMORY, description="Such as 4Gi")


class KubernetesConfig(Strict):
    """A Dask cluster on Kubernetes, created by the Dask operator for one run and removed after it."""

    kind: Literal["kubernetes"]
    image: str = Field(min_length=1, description="Image of scheduler and workers: that of the flow itself")
    scratch: Location = Field(description="A URL that every worker can read, such as s3://bucket/scratch")
    namespace: str = Field(default="aucdist", pattern=DNS_NAME, description="Namespace of the cluster")
    name: str | None = Field(default=None, pattern=DNS_NAME, max_length=53, description="By default after the run")
    workers: Annotated[int, Field(ge=1)] | Adaptive = Field(
        default=2,
        description="A number, or {minimum, maximum}: a fit has one worker for each block within these limits, from start to end",
    )
    threads: int = Field(default=1, ge=1, description="Threads of each worker")
    worker: Resources = Field(default_factory=Resources, description="Resources of each worker's pod")
    scheduler: Resources = Field(default_factory=Resources, description="Resources of the scheduler's pod")
    service_account: str = Field(
        default="aucdist-dask", description="Service account of scheduler and workers; it needs no rights"
    )
    secrets: list[str] = Field(default=[], description="Secrets whose entries become environment variables, as for S3")
    tls: str = Field(default="", description="A Secret with ca.crt, tls.crt and tls.key; empty: no encryption")
    node_selector: dict[str, str] = Field(default={}, description="Labels of the nodes that may run the pods")
    tolerations: list[dict[str, Any]] = Field(default=[], description="Taints of nodes that the pods tolerate")
    timeout: float = Field(default=300, gt=0, description="Seconds to wait for the scheduler, and then for workers")

    @property
    def minimum(self) -> int:
        """Workers to start with."""
        return self.workers.minimum if isinstance(self.workers, Adaptive) else self.workers


ClusterConfig = Annotated[
    NoCluster | LocalClusterConfig | AddressConfig | KubernetesConfig, Field(discriminator="kind")
]

FitClusterConfig = Annotated[
    ThreadsHere | LocalClusterConfig | AddressConfig | KubernetesConfig, Field(discriminator="kind")
]


def refuse_report(cluster: Any) -> None:
    """Check that a cluster can make Dask's performance report.

    Raises InputError if there is no cluster, or if it is local and bokeh is not installed.
    """
    if cluster.kind == "none":
        raise InputError(
            "performance_report is about a cluster, but `cluster` is none: name one, or leave performance_report out"
        )
    if cluster.kind == "local" and not has_bokeh():
        raise InputError(no_bokeh("here"))


# ---- S3 ----------------------------------------------------------------------------------------------------------------


class S3Config(Strict):
    """How to reach S3. By default the environment decides, as for other programs.

    There is no key for a secret: credentials are found in the environment, the profile, the identity of the pod or
    machine, or a Prefect block. The workers of a cluster that is already running have their own environment.
    """

    endpoint: Location | None = Field(default=None, description="URL of a server other than that of AWS")
    region: str | None = Field(default=None, description="Such as eu-central-1")
    profile: str | None = Field(default=None, description="A profile of the AWS configuration files")
    block: str | None = Field(
        default=None,
        pattern=r"^(aws-credentials|secret)/[a-z0-9-]+$",
        description="A Prefect block with credentials: aws-credentials/<name>, or secret/<name> with the same keys in JSON",
    )
    anonymous: list[str] = Field(default=[], description="Buckets that are read without credentials")
    requester_pays: list[str] = Field(default=[], description="Buckets whose reader pays (requester pays)")

    @model_validator(mode="after")
    def _one_identity(self) -> "S3Config":
        if self.profile is not None and self.block is not None:
            raise InputError("give either `profile` or `block`: both name credentials")
        return self


# ---- checkpoints -------------------------------------------------------------------------------------------------------


class CheckpointConfig(Strict):
    """Checkpoints of the fit. A run that was killed resumes from the last one when it is started again, with the same result."""

    seconds: float = Field(default=60, gt=0, description="Seconds between two checkpoints")
    rounds: int | None = Field(default=None, ge=1, description="Also a checkpoint after so many rounds of the solver")
    url: Location | None = Field(
        default=None,
        description="A folder or URL that every worker can write to; by default `checkpoints` below the cluster's "
        "scratch, or `.checkpoints` below the output",
    )
    id: str | None = Field(
        default=None,
        pattern=NAME,
        max_length=100,
        description="Names the fit; by default a digest of everything that its result depends on, so that the same run "
        "resumes by itself",
    )
    attempts: int = Field(default=3, ge=1, description="Attempts in all if the cluster is lost")
