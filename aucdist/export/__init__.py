"""Models for other systems: a description in JSON, a query in SQL, a graph in ONNX, a scorecard."""

from aucdist.export.cards import Scaling, to_scorecard
from aucdist.export.json_text import to_json
from aucdist.export.onnx_model import to_onnx
from aucdist.export.sql import to_sql

__all__ = ["Scaling", "to_json", "to_onnx", "to_scorecard", "to_sql"]
