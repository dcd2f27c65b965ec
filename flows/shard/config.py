"""Configuration of sharding: the model behind the options of the command and behind the form of the Prefect flow."""

from typing import Annotated, Literal

from pydantic import Field

from flows.config.base import Cli
from flows.config.cluster import ClusterConfig, NoCluster, S3Config
from flows.config.data import DataRef


class ShardConfig(DataRef):
    """A data set to be written as shards."""

    target: Annotated[str, Cli(place=3)] = Field(min_length=1)
    """Folder or URL of the shards; a data set that is there is replaced"""
    rows_per_shard: Annotated[int | None, Cli(metavar="N")] = Field(default=None, ge=1)
    """The largest number of rows in a shard; by default as many as take 64 MiB in memory"""
    dtype: Annotated[Literal["float32", "float64"] | None, Cli()] = None
    """Type of the values; by default float64, or float32 if all numbers of a table are float32"""
    seed: Annotated[int, Cli()] = Field(default=0, ge=0)
    """Seed of the order of the rows"""
    cluster: Annotated[ClusterConfig, Cli()] = Field(default_factory=NoCluster)
    """Where it runs"""
    s3: S3Config = Field(default_factory=S3Config)
    """How s3:// URLs are reached"""
