"""What a query does with its aggregates afterwards, evaluated on Arrow columns exactly as Spark would."""

from weft.engine.project.bind import bind
from weft.engine.project.errors import CannotEvaluate, EvaluationError
from weft.engine.project.evaluate import LeafColumns, evaluate
from weft.engine.project.expression import Typed

__all__ = ["CannotEvaluate", "EvaluationError", "LeafColumns", "Typed", "bind", "evaluate"]
