"""Settings of the session that change an answer: weft honours them, or refuses the queries that they concern.

Spark itself evaluates filters, keys and arguments, under the settings of the session. The table is about the rest: how
weft reads the text, combines partials, and computes after the aggregates. It has every setting of Spark's SQLConf that
changes one of these; whether ANSI mode is on is known to the evaluator and is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from weft.engine.project import Typed
from weft.engine.project.literals import parse_literal
from weft.engine.project.types import TypeKind, kind
from weft.model import ACQ
from weft.spark.physical.time_zone import same_offset_always, session_zone
from weft.sql import refuse
from weft.sql.refuse import Source
from weft.sql.tokens import Token, tokenize

CASE_SENSITIVE = "spark.sql.caseSensitive"
TIME_ZONE = "spark.sql.session.timeZone"

DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class BoundTypes:
    """What a query computes after the aggregates, and the Spark types of event time, keys, arguments and answers."""

    roots: tuple[Typed, ...]
    types: tuple[str, ...]

    @property
    def nodes(self) -> Iterator[Typed]:
        stack = list(self.roots)
        while stack:
            node = stack.pop()
            yield node
            stack += node.args


def nowhere(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class SettingRule:
    """A setting whose values, other than those `served`, change an answer of some queries in a way that weft does not.

    `in_text` and `in_types` find what it concerns: a fragment of the query, or None. In `reason`, `{}` is the fragment.
    """

    name: str
    served: tuple[str, ...]
    queries: str
    reason: str
    way_out: str
    in_text: Callable[[ACQ, StructType], str | None] = nowhere
    in_types: Callable[[BoundTypes, str], str | None] = nowhere
    needs_ansi: bool = False
    """Whether Spark ignores it without ANSI mode."""


def _constants(acq: ACQ) -> Iterator[str]:
    """The literals that weft reads itself: those of SELECT and HAVING, outside of aggregates."""
    roots = [output.expression for output in acq.outputs] + ([acq.having] if acq.having else [])
    return (str(node.value) for root in roots for node in root.walk() if node.op == "literal")


def _constant_with(pattern: str) -> Callable[[ACQ, StructType], str | None]:
    search = re.compile(pattern, re.DOTALL).search
    return lambda acq, schema: next(filter(search, _constants(acq)), None)


def _token(wanted: Callable[[Token], bool]) -> Callable[[ACQ, StructType], str | None]:
    return lambda acq, schema: next((t.text for t in tokenize(Source(acq.text)) if wanted(t)), None)


def _calls(*functions: str) -> Callable[[ACQ, StructType], str | None]:
    return lambda acq, schema: next((c.function for c in acq.calls if c.function in functions), None)


def _every_query(acq: ACQ, schema: StructType) -> str | None:
    return acq.name


def _char_or_varchar(acq: ACQ, schema: StructType) -> str | None:
    limited = re.search(r"\b(?:var)?char\(\d+\)", schema.simpleString())
    return limited[0] if limited else _token(lambda t: t.upper in ("CHAR", "CHARACTER", "VARCHAR"))(acq, schema)


def _position_in_group_by(acq: ACQ, schema: StructType) -> str | None:
    """A number that stands alone between the commas of GROUP BY."""
    tokens = tokenize(Source(acq.text))
    words = [token.upper for token in tokens]
    begins = [i + 2 for i in range(len(words) - 1) if words[i : i + 2] == ["GROUP", "BY"]]
    depth = 0
    for i in range(begins[-1] if begins else len(tokens), len(tokens)):
        depth += (words[i] in ("(", "[")) - (words[i] in (")", "]"))
        alone = tokens[i - 1].upper in ("BY", ",") and (
            i + 1 == len(tokens) or tokens[i + 1].text not in "+-*/%|&^<>=."
        )
        if depth == 0 and tokens[i].kind == "number" and alone:
            return tokens[i].text
    return None


def _same_but_for_case(acq: ACQ, schema: StructType) -> str | None:
    return next(_twins(schema), None)


def _twins(data_type: DataType) -> Iterator[str]:
    """Columns, or fields of one struct, whose names differ in case only."""
    if isinstance(data_type, StructType):
        spellings: dict[str, str] = {}
        for field in data_type:
            other = spellings.setdefault(field.name.lower(), field.name)
            if other != field.name:
                yield f"{other} and {field.name}"
            yield from _twins(field.dataType)
    elif isinstance(data_type, ArrayType):
        yield from _twins(data_type.elementType)
    elif isinstance(data_type, MapType):
        yield from _twins(data_type.keyType)
        yield from _twins(data_type.valueType)


def _reads_the_clock(bound: BoundTypes, value: str) -> str | None:
    """Where an instant becomes text, a date or a local time; in zones that change their offset, also days."""
    zone = session_zone(value)
    if zone is None:
        return next((n.sql for n in bound.nodes if _is_local(n) or _counts_local_time(n) or _is_instant(n)), None)
    exact = same_offset_always(zone)
    return next((n.sql for n in bound.nodes if _is_local(n) or (not exact and _counts_local_time(n))), None)


def _is_instant(node: Typed) -> bool:
    return node.op == "literal" and kind(node.type) is TypeKind.TIMESTAMP


def _is_local(node: Typed) -> bool:
    kinds = {kind(t) for t in (node.type, *(arg.type for arg in node.args))}
    return TypeKind.TIMESTAMP in kinds and not kinds.isdisjoint({TypeKind.STRING, TypeKind.DATE, TypeKind.NTZ})


def _counts_local_time(node: Typed) -> bool:
    """A difference of timestamps, which Spark takes between local times, or days that are added to one."""
    kinds = [kind(arg.type) for arg in node.args]
    if node.op not in ("add", "sub") or TypeKind.TIMESTAMP not in kinds:
        return False
    spans = [arg for arg in node.args if kind(arg.type) is TypeKind.DURATION]
    return not spans or not all(map(_under_a_day, spans))


def _under_a_day(node: Typed) -> bool:
    if node.op != "literal":
        return False
    span = parse_literal(node.value, node.type).cast(pa.int64()).as_py()
    return span is None or abs(span) < DAY


def _with_type(pattern: str) -> Callable[[BoundTypes, str], str | None]:
    search = re.compile(pattern).search
    return lambda bound, value: next(filter(search, bound.types), None)


def _computes_with_decimals(bound: BoundTypes, value: str) -> str | None:
    """Where operands of different types get a common decimal type."""

    def mixed(node: Typed) -> bool:
        types = {arg.type for arg in node.args}
        return len(types) > 1 and any(kind(t) is TypeKind.DECIMAL for t in types)

    return next((node.sql for node in bound.nodes if mixed(node)), None)


def _compares_times_with_text(bound: BoundTypes, value: str) -> str | None:
    times = (TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.NTZ)

    def compares(node: Typed) -> bool:
        texts = [a for a in node.args if a.op == "literal" and a.sql.lstrip("( ")[:1] in ("'", '"')]
        return bool(texts) and any(kind(a.type) in times for a in node.args)

    return next((node.sql for node in bound.nodes if compares(node)), None)


_DECIMALS = "expressions over aggregates that bring decimals and other numbers to one type"
_CAST_FIRST = "Cast the operands to one decimal type, or apply this to the answers."

SETTINGS: tuple[SettingRule, ...] = (
    SettingRule(
        CASE_SENSITIVE,
        ("false",),
        "streams with two columns, or two fields of a struct, whose names differ in case only",
        "the columns {} of the stream differ in case only, and weft does not distinguish the case of names",
        "Rename one of them before the stream is woven.",
        in_text=_same_but_for_case,
    ),
    SettingRule(
        TIME_ZONE,
        ("UTC", "Etc/UTC", "GMT", "Z", "UT", "+00:00"),
        "timestamps over aggregates as text, as a date or as a local time; in zones with summer time also days added "
        "to a timestamp, and the difference of two",
        "{} depends on the session's time zone, and weft computes it in UTC only",
        "Select the timestamps, and apply this to the answers.",
        in_types=_reads_the_clock,
    ),
    SettingRule(
        "spark.sql.ansi.doubleQuotedIdentifiers",
        ("false",),
        "double quotes",
        "{} is a name for Spark with spark.sql.ansi.doubleQuotedIdentifiers, and a text for weft",
        "Put names in backquotes and texts in single quotes.",
        in_text=_token(lambda token: token.kind == "string" and '"' in token.text[:2]),
        needs_ansi=True,
    ),
    SettingRule(
        "spark.sql.parser.escapedStringLiterals",
        ("false",),
        "texts with a backslash in SELECT or HAVING, outside of aggregates",
        "Spark reads {} without escapes, with spark.sql.parser.escapedStringLiterals, and weft with them",
        "Put it into WHERE, a key or the argument of an aggregate, which Spark evaluates, or set it to false.",
        in_text=_constant_with(r"\\"),
    ),
    SettingRule(
        "spark.sql.legacy.consecutiveStringLiterals.enabled",
        ("false",),
        "texts with a doubled quote in SELECT or HAVING, outside of aggregates",
        "Spark reads {} as two texts, with spark.sql.legacy.consecutiveStringLiterals.enabled, and weft as one",
        r"Write the quote as \'.",
        in_text=_constant_with(r"''.|\"\"."),
    ),
    SettingRule(
        "spark.sql.variable.substitute",
        ("false",),
        "texts with `${` in SELECT or HAVING, outside of aggregates",
        "Spark replaces the variable in {}, and weft does not",
        "Write its value, or set spark.sql.variable.substitute to false.",
        in_text=_constant_with(r"\$\{"),
    ),
    SettingRule(
        "spark.sql.parser.quotedRegexColumnNames",
        ("false",),
        "names in backquotes",
        "{} is a pattern for Spark with spark.sql.parser.quotedRegexColumnNames, and a name for weft",
        "Write the name without backquotes, or set spark.sql.parser.quotedRegexColumnNames to false.",
        in_text=_token(lambda token: token.kind == "quoted"),
    ),
    SettingRule(
        "spark.sql.groupByOrdinal",
        ("true",),
        "positions in GROUP BY",
        "{} in GROUP BY is a constant without spark.sql.groupByOrdinal, and weft reads it as a position",
        "Group by the expression itself.",
        in_text=_position_in_group_by,
    ),
    SettingRule(
        "spark.sql.functionResolution.sessionOrder",
        ("second", "last"),
        "all",
        "with spark.sql.functionResolution.sessionOrder = first a function of the session may hide an aggregate of "
        "Spark, and weft computes that of Spark",
        "Set it to second.",
        in_text=_every_query,
    ),
    SettingRule(
        "spark.sql.legacy.sessionInitWithConfigDefaults",
        ("false",),
        "all",
        "with spark.sql.legacy.sessionInitWithConfigDefaults Spark runs a stream without the settings of its session",
        "Set it to false.",
        in_text=_every_query,
    ),
    SettingRule(
        "spark.sql.legacy.statisticalAggregate",
        ("false",),
        "`corr`, `covar_samp`, `kurtosis`, `skewness`, `stddev_samp`, `var_samp`",
        "with spark.sql.legacy.statisticalAggregate {} of too few values is NaN, and weft gives NULL",
        "Set it to false.",
        in_text=_calls("corr", "covar_samp", "kurtosis", "skewness", "stddev_samp", "var_samp"),
    ),
    SettingRule(
        "spark.sql.legacy.percentileDiscCalculation",
        ("false",),
        "`percentile_disc`",
        "with spark.sql.legacy.percentileDiscCalculation {} gives other values than weft",
        "Set it to false.",
        in_text=_calls("percentile_disc"),
    ),
    SettingRule(
        "spark.sql.timestampType",
        ("TIMESTAMP_LTZ",),
        "event times, keys, arguments and answers of type TIMESTAMP_LTZ",
        "with spark.sql.timestampType = TIMESTAMP_NTZ weft serves no timestamps with a time zone",
        "Set it to TIMESTAMP_LTZ, and write TIMESTAMP_NTZ where you mean a timestamp without a zone.",
        in_types=_with_type(r"\btimestamp\b(?!:)"),
    ),
    SettingRule(
        "spark.sql.legacy.interval.enabled",
        ("false",),
        "intervals over aggregates",
        "with spark.sql.legacy.interval.enabled Spark computes with calendar intervals, and weft does not",
        "Set it to false, or apply this to the answers.",
        in_types=_with_type(r"\binterval$"),
    ),
    SettingRule(
        "spark.sql.preserveCharVarcharTypeInfo",
        ("false",),
        "CHAR and VARCHAR",
        "with spark.sql.preserveCharVarcharTypeInfo {} is a type of its own, which weft does not have",
        "Use STRING, or set it to false.",
        in_text=_char_or_varchar,
    ),
    SettingRule(
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled",
        ("false",),
        "comparisons of a date or a timestamp with text, over aggregates",
        "with spark.sql.legacy.typeCoercion.datetimeToString.enabled {} compares texts, and weft compares times",
        "Write TIMESTAMP '...' or DATE '...'.",
        in_types=_compares_times_with_text,
    ),
    SettingRule(
        "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate",
        ("false",),
        _DECIMALS,
        "with spark.sql.legacy.decimal.retainFractionDigitsOnTruncate Spark rounds {} at another digit than weft",
        _CAST_FIRST,
        in_types=_computes_with_decimals,
    ),
    SettingRule(
        "spark.sql.legacy.literal.pickMinimumPrecision",
        ("true",),
        _DECIMALS,
        "without spark.sql.legacy.literal.pickMinimumPrecision Spark rounds {} at another digit than weft",
        _CAST_FIRST,
        in_types=_computes_with_decimals,
    ),
    SettingRule(
        "spark.sql.legacy.allowNegativeScaleOfDecimal",
        ("false",),
        "decimals with a negative scale",
        "weft does not compute with {}, which spark.sql.legacy.allowNegativeScaleOfDecimal allows",
        "Cast it to a decimal with a scale of at least 0.",
        in_types=_with_type(r"decimal\(\d+,-"),
    ),
)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The settings of a session: those of the table that have a value that is not served for all queries."""

    unserved: Mapping[str, str]

    @classmethod
    def of(cls, spark: SparkSession) -> SessionSettings:
        ansi = _value(spark, "spark.sql.ansi.enabled") == "true"
        values = {rule: _value(spark, rule.name) for rule in SETTINGS if ansi or not rule.needs_ansi}
        served = {rule.name: {value.upper() for value in rule.served} for rule in SETTINGS}
        return cls({r.name: v for r, v in values.items() if v is not None and v.upper() not in served[r.name]})

    @property
    def case_sensitive(self) -> bool:
        return CASE_SENSITIVE in self.unserved

    @property
    def zone(self) -> tzinfo:
        return session_zone(self.unserved.get(TIME_ZONE, "UTC")) or UTC

    def refuse_text(self, acq: ACQ, stream: StructType) -> None:
        """Refuse what a setting concerns by its text alone; before Spark analyses it, which may fail on it."""
        self._refuse(acq, lambda rule, value: rule.in_text(acq, stream))

    def refuse_types(self, acq: ACQ, bound: BoundTypes) -> None:
        """Refuse what a setting concerns by its types."""
        self._refuse(acq, lambda rule, value: rule.in_types(bound, value))

    def _refuse(self, acq: ACQ, concerned: Callable[[SettingRule, str], str | None]) -> None:
        for rule in SETTINGS:
            value = self.unserved.get(rule.name)
            fragment = None if value is None else concerned(rule, value)
            if fragment is not None:
                reason = rule.reason.replace("{}", fragment)
                why = reason if rule.name in reason else f"{reason} ({rule.name} is {value})"
                raise refuse(acq, why, rule.way_out, fragment=fragment)


def _value(spark: SparkSession, name: str) -> str | None:
    """None if this version of Spark has no such setting."""
    try:
        value = spark.conf.get(name)
        return None if value is None else str(value)
    except PySparkException:
        return None
