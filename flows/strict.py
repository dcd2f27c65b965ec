"""The base of all models of configurations."""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """A model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid")
