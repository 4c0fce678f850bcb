"""The algebra of aggregates: what is kept of rows, how it combines, how an answer is read from it."""

from weft.aggregates.component import KINDS, Algebra, Component
from weft.aggregates.holistic import HOLISTIC, NUMBERS_FROM, numbers_of, unserved
from weft.aggregates.registry import AGGREGATES, EVENT_TIME, Aggregate, components
from weft.aggregates.user import USERS, UserAggregate, learn, register

__all__ = [
    "AGGREGATES",
    "EVENT_TIME",
    "HOLISTIC",
    "KINDS",
    "NUMBERS_FROM",
    "USERS",
    "Aggregate",
    "Algebra",
    "Component",
    "UserAggregate",
    "components",
    "learn",
    "numbers_of",
    "register",
    "unserved",
]
