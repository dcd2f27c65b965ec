"""How features are encoded: missing numbers replaced, log(1 + x), scaling; learnt from training rows alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aucdist.data.dataset import Schema
from aucdist.data.preprocess import WITHOUT_FILL, Preprocessor, fit_preprocessor
from flows.config.data import DataConfig

AS_READ = Preprocessor((), "none", None, None)
"""Does nothing to the features."""


@dataclass(frozen=True)
class Encoding:
    """How features are encoded, before anything has been learnt from training rows."""

    config: DataConfig
    schema: Schema

    def fit(self, blocks: Sequence[Any], **options: Any) -> Preprocessor:
        """Return the encoding learnt from blocks of training rows; see `aucdist.data.preprocess.fit_preprocessor`."""
        return fit_preprocessor(
            blocks, self.schema.feature_names, log1p=self.config.log1p, scale=self.config.scale,
            categories=self.schema.categories, impute=self.config.impute, **options,
        )  # fmt: skip

    @property
    def learns(self) -> bool:
        """Whether the encoding of a row depends on other rows."""
        return self.config.scale not in ("none", "unit-row") or self.config.impute not in WITHOUT_FILL
