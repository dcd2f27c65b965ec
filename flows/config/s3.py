"""Configuration of the access to S3."""

from pydantic import Field, model_validator

from aucdist.data.storage.urls import Location
from aucdist.errors import InputError
from flows.config.base import Strict


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
