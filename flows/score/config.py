"""Configuration of batch scoring: the model behind the options of the command and behind the form of the Prefect flow."""

from pydantic import Field

from aucdist.data.storage.urls import Location
from flows.config.cluster import ClusterConfig, NoCluster
from flows.config.data import UnlabelledRef
from flows.config.s3 import S3Config


class ScoreConfig(UnlabelledRef):
    """Rows to be scored by a model."""

    model: Location = Field(min_length=1, description="A run folder, or the model in it: a folder or URL")
    output: Location = Field(min_length=1, description="Folder or URL of the scores")
    top: int = Field(
        default=0, ge=0, description="Of a model of several classes: so many columns name the most likely ones"
    )
    contributions: bool = Field(default=False, description="Whether columns say what each feature adds to a score")
    cluster: ClusterConfig = Field(default_factory=NoCluster, description="Where it runs")
    s3: S3Config = Field(default_factory=S3Config, description="How s3:// URLs are reached")
