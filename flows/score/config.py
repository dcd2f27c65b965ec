"""Configuration of batch scoring: the model behind the options of the command and behind the form of the Prefect flow."""

from typing import Annotated

from pydantic import Field

from aucdist.data.storage.urls import Location
from flows.config.base import Cli
from flows.config.cluster import ClusterConfig, NoCluster, S3Config
from flows.config.data import UnlabelledRef


class ScoreConfig(UnlabelledRef):
    """Rows to be scored by a model."""

    model: Annotated[Location, Cli(place=1)] = Field(min_length=1)
    """A run folder, or the model in it: a folder or URL"""
    output: Annotated[Location, Cli(place=3)] = Field(min_length=1)
    """A folder or URL for the scores, empty or of this very run"""
    top: Annotated[int, Cli()] = Field(default=0, ge=0)
    """For a model of several classes: columns that name so many of the most likely ones"""
    contributions: Annotated[bool, Cli()] = False
    """Also columns of what each feature adds to a score"""
    cluster: Annotated[ClusterConfig, Cli()] = Field(default_factory=NoCluster)
    """Where it runs"""
    s3: S3Config = Field(default_factory=S3Config)
    """How s3:// URLs are reached"""
