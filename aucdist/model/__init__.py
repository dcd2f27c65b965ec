"""Saved models: their files, their scores, scorecards, and the scores of files."""

from aucdist.model.files import as_model, load_model, write_model
from aucdist.model.linear_model import LinearModel

__all__ = ["LinearModel", "as_model", "load_model", "write_model"]
