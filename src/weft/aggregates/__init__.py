"""The algebra of aggregates: which components they keep, how these combine, and how an answer is read from them.

kind        a kind of component: lift, merge, combine, hash table support
combining   the ways to combine partials, one type each
lowering    the ways to read an answer, one type each
aggregate   SQL names: the components of a call and how its answer is read
families    the kinds and aggregates themselves, one module per family
"""

from weft.aggregates.aggregate import AGGREGATES, EVENT_TIME, Aggregate, add_family, components, keeps_values
from weft.aggregates.combining import UserAggregate
from weft.aggregates.component import Component
from weft.aggregates.families import BUILT_IN, BUILT_IN_KINDS
from weft.aggregates.families.counts_and_sums import ROWS
from weft.aggregates.kind import KINDS, Algebra, Kind
from weft.aggregates.user import USERS, learn, register

__all__ = [
    "AGGREGATES",
    "BUILT_IN",
    "BUILT_IN_KINDS",
    "EVENT_TIME",
    "KINDS",
    "ROWS",
    "USERS",
    "Aggregate",
    "Algebra",
    "Component",
    "Kind",
    "UserAggregate",
    "add_family",
    "components",
    "keeps_values",
    "learn",
    "register",
]
