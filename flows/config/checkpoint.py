"""Configuration of checkpoints."""

from pydantic import Field

from flows.config.base import NAME, Strict


class CheckpointConfig(Strict):
    """Checkpoints of the fit. A run that was killed, started again, goes on from its last one and ends with the same bits."""

    seconds: float = Field(default=60, gt=0, description="One is written when so many seconds have gone since the last")
    rounds: int | None = Field(default=None, ge=1, description="And after so many rounds of the solver")
    url: str | None = Field(
        default=None,
        description="Where, a folder or URL that every worker can write to; by default `checkpoints` below the cluster's "
        "scratch, or `.checkpoints` below the output",
    )
    id: str | None = Field(
        default=None,
        pattern=NAME,
        max_length=100,
        description="Names the fit; by default a digest of all that decides its bits, so that the same run goes on by itself",
    )
    attempts: int = Field(default=3, ge=1, description="How often the work is begun when its cluster is lost")
