"""Text to queries and back: Spark SQL or CQL in, frozen queries out, with plain Spark SQL beside them."""

from weft.sql.duration import duration, duration_text
from weft.sql.parse import parse
from weft.sql.refuse import Refused, refuse
from weft.sql.stand_ins import standing_in

__all__ = ["Refused", "duration", "duration_text", "parse", "refuse", "standing_in"]
