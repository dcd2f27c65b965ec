"""Configuration of batch scoring: the model behind the options of the command and behind the form of the Prefect flow."""

from typing import Annotated, Any

from pydantic import Field, WrapValidator

from aucdist.data.sources.source import UNLABELLED, Source
from flows.config.cluster import ClusterConfig, NoCluster
from flows.config.data import DataRef
from flows.config.s3 import S3Config


def _unlabelled(value: Any, check: Any) -> Any:
    return value if isinstance(value, Source | None) else Source.model_validate(value, context=UNLABELLED)


class ScoreConfig(DataRef):
    """Rows to be scored by a model."""

    source: Annotated[Source | None, WrapValidator(_unlabelled)] = Field(
        default=None, description="A source written out; it needs no label, and the model knows how its rows are read"
    )
    model: str = Field(min_length=1, description="The model: a folder or URL, such as <run>/model")
    output: str = Field(min_length=1, description="Folder or URL of the scores")
    cluster: ClusterConfig = Field(default_factory=NoCluster, description="Where it runs")
    s3: S3Config = Field(default_factory=S3Config, description="How s3:// URLs are reached")
