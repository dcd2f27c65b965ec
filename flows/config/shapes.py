"""What a report says beside the shapes of a model: how they vary, and what their directions cost."""

from pydantic import Field

from aucdist.errors import InputError
from flows.config.base import Strict
from flows.config.model import ModelConfig


class ShapesConfig(Strict):
    """Additional fits, whose results appear in the report."""

    halves: int | None = Field(
        default=None,
        ge=2,
        le=100,
        description="The report shows a band: the shapes of models that are fitted to so many random halves of the training "
        "rows; 10 are usual",
    )
    compare_free: bool = Field(
        default=False,
        description="Fits the model without `monotone`, too, so that the report says what the directions cost",
    )

    @property
    def wanted(self) -> bool:
        """Whether there is anything to fit."""
        return self.halves is not None or self.compare_free


def check_shapes(config: ShapesConfig, model: ModelConfig) -> None:
    """Raise an InputError for fits that a model cannot have."""
    if config.compare_free and getattr(model.built, "monotone", None) is None and not model.chooses_features:
        raise InputError("shapes: `compare_free` compares with a fit without `monotone`, which the model does not have")
    features = model.features if not isinstance(model.features, dict) else model.features.get("map")
    if config.halves is not None and features not in ("bins", "auto"):
        raise InputError(
            f"shapes: `halves` are for models of bins, and `features` is {features!r}: take `features: bins`"
        )
