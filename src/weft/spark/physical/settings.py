"""Settings of the session that change an answer: weft honours them, or refuses the queries that they concern.

Spark itself evaluates filters, keys and arguments, under the settings of the session. The table is about the rest: how
weft reads the text, combines partials, and computes after the aggregates. Whether ANSI mode is on is known to the
evaluator and is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from weft.model import ACQ
from weft.spark.physical import setting_concerns as concerns
from weft.spark.physical.setting_concerns import BoundTypes
from weft.spark.physical.time_zone import session_zone
from weft.sql import refuse

CASE_SENSITIVE = "spark.sql.caseSensitive"
TIME_ZONE = "spark.sql.session.timeZone"


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
    in_text: Callable[[ACQ, StructType], str | None] = concerns.nowhere
    in_types: Callable[[BoundTypes, str], str | None] = concerns.nowhere
    needs_ansi: bool = False
    """Whether Spark ignores it without ANSI mode."""


_DECIMALS = "expressions over aggregates that bring decimals and other numbers to one type"
_CAST_FIRST = "Cast the operands to one decimal type, or apply this to the answers."

SETTINGS: tuple[SettingRule, ...] = (
    SettingRule(
        CASE_SENSITIVE,
        ("false",),
        "streams with two columns, or two fields of a struct, whose names differ in case only",
        "the columns {} of the stream differ in case only, and weft does not distinguish the case of names",
        "Rename one of them before the stream is woven.",
        in_text=concerns.same_but_for_case,
    ),
    SettingRule(
        TIME_ZONE,
        ("UTC", "Etc/UTC", "GMT", "Z", "UT", "+00:00"),
        "timestamps over aggregates as text, as a date or as a local time; in zones with summer time also days added "
        "to a timestamp, and the difference of two",
        "{} depends on the session's time zone, and weft computes it in UTC only",
        "Select the timestamps, and apply this to the answers.",
        in_types=concerns.reads_the_clock,
    ),
    SettingRule(
        "spark.sql.ansi.doubleQuotedIdentifiers",
        ("false",),
        "double quotes",
        "{} is a name for Spark with spark.sql.ansi.doubleQuotedIdentifiers, and a text for weft",
        "Put names in backquotes and texts in single quotes.",
        in_text=concerns.token(lambda token: token.kind == "string" and '"' in token.text[:2]),
        needs_ansi=True,
    ),
    SettingRule(
        "spark.sql.parser.escapedStringLiterals",
        ("false",),
        "texts with a backslash in SELECT or HAVING, outside of aggregates",
        "Spark reads {} without escapes, with spark.sql.parser.escapedStringLiterals, and weft with them",
        "Put it into WHERE, a key or the argument of an aggregate, which Spark evaluates, or set it to false.",
        in_text=concerns.constant_with(r"\\"),
    ),
    SettingRule(
        "spark.sql.legacy.consecutiveStringLiterals.enabled",
        ("false",),
        "texts with a doubled quote in SELECT or HAVING, outside of aggregates",
        "Spark reads {} as two texts, with spark.sql.legacy.consecutiveStringLiterals.enabled, and weft as one",
        r"Write the quote as \'.",
        in_text=concerns.constant_with(r"''.|\"\"."),
    ),
    SettingRule(
        "spark.sql.variable.substitute",
        ("false",),
        "texts with `${` in SELECT or HAVING, outside of aggregates",
        "Spark replaces the variable in {}, and weft does not",
        "Write its value, or set spark.sql.variable.substitute to false.",
        in_text=concerns.constant_with(r"\$\{"),
    ),
    SettingRule(
        "spark.sql.parser.quotedRegexColumnNames",
        ("false",),
        "names in backquotes",
        "{} is a pattern for Spark with spark.sql.parser.quotedRegexColumnNames, and a name for weft",
        "Write the name without backquotes, or set spark.sql.parser.quotedRegexColumnNames to false.",
        in_text=concerns.token(lambda token: token.kind == "quoted"),
    ),
    SettingRule(
        "spark.sql.groupByOrdinal",
        ("true",),
        "positions in GROUP BY",
        "{} in GROUP BY is a constant without spark.sql.groupByOrdinal, and weft reads it as a position",
        "Group by the expression itself.",
        in_text=concerns.position_in_group_by,
    ),
    SettingRule(
        "spark.sql.functionResolution.sessionOrder",
        ("second", "last"),
        "all",
        "with spark.sql.functionResolution.sessionOrder = first a function of the session may hide an aggregate of "
        "Spark, and weft computes that of Spark",
        "Set it to second.",
        in_text=concerns.every_query,
    ),
    SettingRule(
        "spark.sql.legacy.sessionInitWithConfigDefaults",
        ("false",),
        "all",
        "with spark.sql.legacy.sessionInitWithConfigDefaults Spark runs a stream without the settings of its session",
        "Set it to false.",
        in_text=concerns.every_query,
    ),
    SettingRule(
        "spark.sql.legacy.statisticalAggregate",
        ("false",),
        "`corr`, `covar_samp`, `kurtosis`, `skewness`, `stddev_samp`, `var_samp`",
        "with spark.sql.legacy.statisticalAggregate {} of too few values is NaN, and weft gives NULL",
        "Set it to false.",
        in_text=concerns.calls("corr", "covar_samp", "kurtosis", "skewness", "stddev_samp", "var_samp"),
    ),
    SettingRule(
        "spark.sql.legacy.percentileDiscCalculation",
        ("false",),
        "`percentile_disc`",
        "with spark.sql.legacy.percentileDiscCalculation {} gives other values than weft",
        "Set it to false.",
        in_text=concerns.calls("percentile_disc"),
    ),
    SettingRule(
        "spark.sql.timestampType",
        ("TIMESTAMP_LTZ",),
        "event times, keys, arguments and answers of type TIMESTAMP_LTZ",
        "with spark.sql.timestampType = TIMESTAMP_NTZ weft serves no timestamps with a time zone",
        "Set it to TIMESTAMP_LTZ, and write TIMESTAMP_NTZ where you mean a timestamp without a zone.",
        in_types=concerns.with_type(r"\btimestamp\b(?!:)"),
    ),
    SettingRule(
        "spark.sql.legacy.interval.enabled",
        ("false",),
        "intervals over aggregates",
        "with spark.sql.legacy.interval.enabled Spark computes with calendar intervals, and weft does not",
        "Set it to false, or apply this to the answers.",
        in_types=concerns.with_type(r"\binterval$"),
    ),
    SettingRule(
        "spark.sql.preserveCharVarcharTypeInfo",
        ("false",),
        "CHAR and VARCHAR",
        "with spark.sql.preserveCharVarcharTypeInfo {} is a type of its own, which weft does not have",
        "Use STRING, or set it to false.",
        in_text=concerns.char_or_varchar,
    ),
    SettingRule(
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled",
        ("false",),
        "comparisons of a date or a timestamp with text, over aggregates",
        "with spark.sql.legacy.typeCoercion.datetimeToString.enabled {} compares texts, and weft compares times",
        "Write TIMESTAMP '...' or DATE '...'.",
        in_types=concerns.compares_times_with_text,
    ),
    SettingRule(
        "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate",
        ("false",),
        _DECIMALS,
        "with spark.sql.legacy.decimal.retainFractionDigitsOnTruncate Spark rounds {} at another digit than weft",
        _CAST_FIRST,
        in_types=concerns.computes_with_decimals,
    ),
    SettingRule(
        "spark.sql.legacy.literal.pickMinimumPrecision",
        ("true",),
        _DECIMALS,
        "without spark.sql.legacy.literal.pickMinimumPrecision Spark rounds {} at another digit than weft",
        _CAST_FIRST,
        in_types=concerns.computes_with_decimals,
    ),
    SettingRule(
        "spark.sql.legacy.allowNegativeScaleOfDecimal",
        ("false",),
        "decimals with a negative scale",
        "weft does not compute with {}, which spark.sql.legacy.allowNegativeScaleOfDecimal allows",
        "Cast it to a decimal with a scale of at least 0.",
        in_types=concerns.with_type(r"decimal\(\d+,-"),
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
