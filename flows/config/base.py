"""The base of all configuration models."""

from pydantic import BaseModel, ConfigDict

NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
"""Names of runs and checkpoints, which become parts of paths."""


class Strict(BaseModel):
    """A model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid")
