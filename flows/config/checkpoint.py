"""Configuration of checkpoints."""

from pydantic import Field

from aucdist.data.storage.urls import Location
from flows.config.base import NAME, Strict


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
