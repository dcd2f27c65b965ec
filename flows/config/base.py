"""The base of all configuration models."""

from pydantic import BaseModel, ConfigDict

NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
"""What runs and checkpoints may be called: it becomes part of a path."""


class Strict(BaseModel):
    """A model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid")
