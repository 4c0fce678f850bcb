"""Whole queries at random: the grammar of docs/sql.md over all that Spark evaluates.

drawer = QueryDrawer(Random(7), table, pool)
query = drawer.query()
query.spark_sql, query.weft_sql
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

from tests.support.query_pool import INTEGERS, Pool, is_number, is_ordered
from tests.support.query_values import Expr, Guarded, OutputColumn, RandomQuery, WindowText, expr
from tests.support.random_rows import ID, SECOND, RandomTable

MOMENTS = ("stddev", "stddev_samp", "std", "stddev_pop", "variance", "var_samp", "var_pop", "skewness", "kurtosis")
PAIRS = (
    "corr", "covar_samp", "covar_pop", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_sxy", "regr_syy",
    "regr_avgx", "regr_avgy", "regr_count",
)  # fmt: skip
BITS = ("bit_and", "bit_or", "bit_xor")
BOOLEANS = ("bool_and", "bool_or", "every", "any", "some")
ENDS = ("first", "last", "first_value", "last_value", "any_value")

NUMBER_AFTER = (
    "{} + 1", "{} - 2", "{} * 2", "{} * 2.5", "{} / 3", "{} / 0.7", "-{}", "abs({})", "round({}, 1)", "round({})",
    "ceil({})", "floor({})", "coalesce({}, 0)", "nullif({}, 0)", "{} % 7", "mod({}, 3)", "power({}, 2)", "sign({})",
    "sqrt(abs({}))", "exp({} / 1000)", "ln(abs({}) + 1)", "log10(abs({}))", "log2({})", "cast({} AS string)",
    "cast({} AS double)", "cast({} AS decimal(20,4))", "{}::decimal(30,10)", "float({})", "if({} > 0, 'p', 'n')",
    "nvl({}, -1)", "CASE WHEN {} > 1 THEN 'big' WHEN {0} IS NULL THEN 'none' END", "CASE {} WHEN 0 THEN 1 ELSE 2 END",
    "ifnull({}, 0.5)", "greatest({}, 1.5)", "least({}, 0, NULL)", "cast({} AS boolean)", "negative({})", "1e0 * {}",
)  # fmt: skip
TEXT_AFTER = (
    "coalesce({}, 'z')", "nullif({}, 'a')", "{}::binary", "{} = 'a'", "{} IN ('a', '')",
    "CASE WHEN {} >= 'a' THEN {0} ELSE 'less' END", "greatest({}, 'b')", "{} < 'b'",
)  # fmt: skip
TIME_AFTER = (
    "cast({} AS string)", "cast({} AS date)", "date({})", "cast({} AS bigint)", "{} + INTERVAL '1' DAY", "year({})",
    "coalesce({}, {0})", "date_format({}, 'yyyy-MM-dd HH')", "{}::timestamp", "cast({} AS timestamp_ntz)",
)  # fmt: skip
ANY_AFTER = (
    "coalesce({}, NULL)", "{} IS NULL", "isnotnull({})", "nullif({}, {0})", "CASE WHEN {} IS NULL THEN 0 ELSE 1 END",
    "if({} IS NULL, 1, 0)",
)  # fmt: skip

REFUSED_AFTER = ("hash({})", "{} || 'x'", "upper({})", "length({})", "cast({} AS int)", "{} LIKE 'a%'")
"""Most of these weft refuses, or both sides fail on a row."""

NUMBER_TESTS = (" > 0", " <= 1", " <> 0", " BETWEEN -2 AND 2", " IN (0, 1, 2)")
ROW_TESTS = ("k > 0", "k IN (0, 1)", "b", "s > 'a'", "x > 0", "`a b` <> 1", "wild > 0", "num <> ''")

TWO_AFTER = (
    "{} + {}", "{} - {}", "{} / nullif({}, 0)", "{} * {}", "greatest({}, {})", "{} > {}", "{} <=> {}",
    "coalesce({}, {})", "CASE WHEN {} > 0 THEN {} END", "{} / {}",
)  # fmt: skip
HAVING_TESTS = (
    "{} > 1", "{} <> 0", "{} BETWEEN -5 AND 50", "NOT ({} > 2)", "{} > 0 OR count(*) > 2", "{} IN (0, 1, 2, 3)",
    "coalesce({}, 0) >= 0", "{} IS NULL OR {0} < 10", "{} % 2 = 0",
)  # fmt: skip
WINDOW_TESTS = (
    "window.start > TIMESTAMP'{}'", "window.end <= '{}'", "window.start > '{}'", "window.start >= '{}Z'",
    "window.start BETWEEN TIMESTAMP'{}' AND TIMESTAMP'2030-01-01'", "cast(window.start AS string) > '{}'",
    "unix_seconds(window.start) > 0",
)  # fmt: skip
ORDERS = (
    ID, f"-{ID}", f"{ID} % 1000", f"struct(k, {ID})", f"array({ID})", f"cast({ID} AS string)",
    f"timestamp_seconds({ID})", f"cast({ID} AS decimal(38,2))", f"if(k > 0, {ID}, NULL)",
)  # fmt: skip
"""Of `max_by`: without ties."""

Fits = Callable[[Expr], bool]

SMOOTH_AFTER = (
    "{} + 1", "{} * 2.5", "-{}", "abs({})", "coalesce({}, 0)", "nvl({}, -1)", "cast({} AS double)", "{} IS NULL",
)  # fmt: skip
"""What keeps an error in the tenth digit small: deviations and regressions agree to 1e-9, not to the last bit."""


class QueryDrawer:
    """Draws queries over one table from one pool of expressions, so that the queries of a group share arguments."""

    def __init__(self, random: Random, table: RandomTable, pool: Pool) -> None:
        self._random = random
        self._table = table
        self._pool = pool
        self._guards: list[Expr] = []
        self._ordered = False

    def query(self) -> RandomQuery:
        self._guards, self._ordered = [], False
        keys = self._keys()
        window = self._window()
        columns = [*self._chosen_keys(keys), *self._window_columns()]
        for _ in range(self._random.choice((1, 1, 1, 2, 2, 3))):
            columns.append(self._output())
        self._random.shuffle(columns)
        having = self._having(keys)
        conditions = [self._condition() for _ in range(self._random.choice((0, 0, 1, 1, 2)))]
        where = tuple(dict.fromkeys((*self._guards, *conditions)))
        return RandomQuery(self._named(columns), window, where, keys, having, self._ordered)

    # Window and keys

    def _window(self) -> WindowText:
        random = self._random
        slide = random.choice((1, 2, 5, 10, 10, 30, 60)) * SECOND
        shape = random.random()
        if shape < 0.3:
            length = slide
        elif shape < 0.7:
            length = slide * random.choice((2, 3, 6))
        elif shape < 0.9:
            length = slide + random.choice((500_000, SECOND, 1_234_567, slide * 3 // 2))
        else:
            slide, length = 1_500_001, 7 * SECOND
        offset = random.choice((0, 0, 0, SECOND, -1_300_000, 123_457))
        if abs(offset) >= slide:
            offset = 0
        return WindowText(length, slide, offset, cql=offset >= 0 and random.random() < 0.15)

    def _window_columns(self) -> list[OutputColumn]:
        choices = (["window"], ["window.start"], ["window.start", "window.end"], ["window.end"], [])
        return [OutputColumn(expr("timestamp", text), None) for text in self._random.choice(choices)]

    def _keys(self) -> tuple[Expr, ...]:
        groupable = self._pool.of(lambda e: "variant" not in e.type and "geo" not in e.type and e.type != "void")
        keys: list[Expr] = []
        for _ in range(self._random.choice((0, 1, 1, 1, 2, 2, 3))):
            draw = self._random.random()
            if draw < 0.1:
                keys.append(self._guarded(lambda e: True))
            elif draw < 0.11 and self._pool.failing:
                keys.append(self._random.choice(self._pool.failing))
            elif draw < 0.4:
                keys.append(self._random.choice([e for e in self._pool.columns if e.tame or e.type == "boolean"]))
            else:
                keys.append(self._random.choice(groupable))
        return tuple(dict.fromkeys(keys))

    def _chosen_keys(self, keys: tuple[Expr, ...]) -> list[OutputColumn]:
        return [OutputColumn(key, None) for key in keys if self._random.random() < 0.85]

    # Arguments

    def _guarded(self, fits: Fits) -> Expr:
        """A partial function whose guard is a part of WHERE."""
        chosen = self._guarded_fitting(fits)
        if chosen is None:
            return self._random.choice(self._pool.of(fits))
        self._guards.append(chosen.guard)
        return chosen.value

    def _guarded_fitting(self, fits: Fits) -> Guarded | None:
        fitting = [g for g in self._pool.guarded if fits(g.value)]
        return self._random.choice(fitting) if fitting else None

    def _argument(self, fits: Fits) -> tuple[Expr, Expr | None]:
        """An argument of an aggregate, with a condition for its FILTER clause if that is its guard."""
        draw = self._random.random()
        if draw < 0.12 and (chosen := self._guarded_fitting(fits)):
            value, guard = chosen.value, chosen.guard
            place = self._random.choice(("where", "filter", "case"))
            if place == "where":
                self._guards.append(guard)
                return value, None
            if place == "filter":
                return value, guard
            return expr(value.type, "CASE WHEN ", guard, " THEN ", value, " END", tame=value.tame), None
        if draw < 0.125 and (failing := [e for e in self._pool.failing if fits(e)]):
            return self._random.choice(failing), None
        fitting = self._pool.of(fits)
        if not fitting:
            return expr("int", "k", tame=True), None
        return self._random.choice(fitting), None

    def _tame(self) -> tuple[Expr, Expr | None]:
        value, guard = self._argument(lambda e: e.tame and is_number(e.type))
        draw = self._random.random()
        if draw < 0.15:
            other = self._random.choice(self._pool.of(lambda e: e.tame and is_number(e.type)))
            value = expr(value.type, value, self._random.choice((" + ", " - ", " * ")), other, tame=True)
        elif draw < 0.2:
            value = expr(value.type, "(", value, ") / 8", tame=True)
        return value, guard

    def _condition(self) -> Expr:
        """A filter of rows."""
        random = self._random
        draw = random.random()
        if draw < 0.2:
            chosen = random.choice(self._pool.guarded)
            test = random.choice(("{} IS NOT NULL", "{} = {}", "hash({}) % 2 = 0"))
            return expr("boolean", "(", chosen.guard, " AND ", *_fill(test, chosen.value, chosen.value), ")")
        if draw < 0.4:
            booleans = self._pool.of(lambda e: e.type == "boolean")
            return expr("boolean", random.choice(("", "NOT ")), "(", random.choice(booleans), ")")
        value = random.choice(self._pool.of(lambda e: is_ordered(e.type)))
        if draw < 0.5:
            return expr("boolean", value, random.choice((" IS NULL", " IS NOT NULL")))
        if draw < 0.7:
            number = random.choice(self._pool.of(lambda e: is_number(e.type)))
            return expr("boolean", number, random.choice(NUMBER_TESTS))
        if draw < 0.8:
            return expr("boolean", "(k > 0 OR ", value, " IS NOT NULL)")
        return expr("boolean", random.choice(ROW_TESTS))

    # Aggregates

    def _aggregate(self) -> tuple[Expr, bool]:
        """A call with its FILTER clause, and whether it gives an array in no order."""
        call, guard, unordered = self._call()
        conditions = [] if guard is None else [guard]
        if self._random.random() < 0.15:
            conditions.append(self._condition())
        if not conditions:
            return call, unordered
        both = [part for c in conditions for part in (" AND ", c)][1:]
        return expr(call.type, call, " FILTER (WHERE ", *both, ")"), unordered

    def _call(self) -> tuple[Expr, Expr | None, bool]:
        drawers = (
            self._count, self._count, self._sum, self._sum, self._extreme, self._extreme, self._extreme, self._by,
            self._end, self._moments, self._pair, self._boolean, self._bits, self._percentile, self._set,
        )  # fmt: skip
        return self._random.choice(drawers)()

    def _count(self) -> tuple[Expr, Expr | None, bool]:
        draw = self._random.random()
        value, guard = self._argument(lambda e: True)
        if draw < 0.3:
            return expr("bigint", "count(*)"), None, False
        if draw < 0.5:
            return expr("bigint", "count(", value, ")"), guard, False
        if draw < 0.6:
            return expr("bigint", "count(", value, ", ", self._random.choice(self._pool.columns), ")"), guard, False
        if draw < 0.8:
            return expr("bigint", "count(DISTINCT ", value, ")"), guard, False
        kind = "boolean" if self._random.random() < 0.9 else "string"
        condition, guard = self._argument(lambda e: e.type == kind)
        return expr("bigint", "count_if(", condition, ")"), guard, False

    def _sum(self) -> tuple[Expr, Expr | None, bool]:
        """Means of wild integers are left out: Spark adds them as doubles, so their last digits depend on the order."""
        random = self._random
        name = random.choice(("sum", "sum", "avg", "mean") if random.random() < 0.97 else ("try_sum", "try_avg"))
        if random.random() < 0.15:
            texts = random.random() < 0.1
            value, guard = self._argument(lambda e: is_summed(e) and (texts or e.type != "string"))
            name = "sum" if value.type in (*INTEGERS, "string") else name
        else:
            value, guard = self._tame()
        return expr(_summed(name, value.type), f"{name}(", value, ")"), guard, False

    def _extreme(self) -> tuple[Expr, Expr | None, bool]:
        value, guard = self._argument(lambda e: is_ordered(e.type))
        distinct = "DISTINCT " if self._random.random() < 0.05 else ""
        return expr(value.type, f"{self._random.choice(('min', 'max'))}({distinct}", value, ")"), guard, False

    def _by(self) -> tuple[Expr, Expr | None, bool]:
        value, guard = self._argument(lambda e: True)
        name = self._random.choice(("max_by", "min_by"))
        return expr(value.type, f"{name}(", value, f", {self._random.choice(ORDERS)})"), guard, False

    def _end(self) -> tuple[Expr, Expr | None, bool]:
        if self._table.ties:
            return self._extreme()
        self._ordered = True
        value, guard = self._argument(lambda e: True)
        nulls = self._random.choice((")", ")", ", true)", ") IGNORE NULLS"))
        return expr(value.type, f"{self._random.choice(ENDS)}(", value, nulls), guard, False

    def _moments(self) -> tuple[Expr, Expr | None, bool]:
        value, guard = self._tame()
        return expr("double", f"{self._random.choice(MOMENTS)}(", value, ")"), guard, False

    def _pair(self) -> tuple[Expr, Expr | None, bool]:
        value, guard = self._tame()
        other = self._random.choice(self._pool.of(lambda e: e.tame and is_number(e.type)))
        return expr("double", f"{self._random.choice(PAIRS)}(", value, ", ", other, ")"), guard, False

    def _boolean(self) -> tuple[Expr, Expr | None, bool]:
        value, guard = self._argument(lambda e: e.type == "boolean")
        return expr("boolean", f"{self._random.choice(BOOLEANS)}(", value, ")"), guard, False

    def _bits(self) -> tuple[Expr, Expr | None, bool]:
        value, guard = self._argument(lambda e: e.type in INTEGERS)
        return expr(value.type, f"{self._random.choice(BITS)}(", value, ")"), guard, False

    def _percentile(self) -> tuple[Expr, Expr | None, bool]:
        value, guard = self._argument(lambda e: is_number(e.type) and (e.tame or not e.type.startswith("decimal")))
        share = self._random.choice(("0", "0.3", "0.5", "1", "array(0.1, 0.9)"))
        text = self._random.choice(
            ("median(", f"percentile(,{share}", f"percentile_cont({share})", f"percentile_disc({share})")
        )
        if text == "median(":
            return expr("double", text, value, ")"), guard, False
        if text.startswith("percentile(,"):
            kind = "array<double>" if "array" in share else "double"
            return expr(kind, "percentile(", value, f", {share})"), guard, False
        kind = "array<double>" if "array" in share else "double"
        return expr(kind, f"{text} WITHIN GROUP (ORDER BY ", value, ")"), guard, False

    def _set(self) -> tuple[Expr, Expr | None, bool]:
        value, guard = self._argument(lambda e: "map" not in e.type and "collate" not in e.type)
        return expr(f"array<{value.type}>", "collect_set(", value, ")"), guard, True

    # After the aggregates

    def _output(self) -> OutputColumn:
        call, unordered = self._aggregate()
        if unordered or self._random.random() < 0.5:
            return OutputColumn(call, "", unordered)
        return OutputColumn(self._after(call), "")

    def _after(self, call: Expr) -> Expr:
        """Something computed from an aggregate, or from two of them."""
        random = self._random
        if random.random() < 0.2 and is_number(call.type) and not _is_approximate(call):
            other, unordered = self._aggregate()
            if is_number(other.type) and not unordered and not _is_approximate(other):
                return expr("double", *_fill(random.choice(TWO_AFTER), call, other))
        if random.random() < 0.02:
            return expr("string", *_fill(random.choice(REFUSED_AFTER), call))
        if random.random() < 0.03:
            return expr(
                "void",
                random.choice(("NULL", "NULL + 1", "1", "'x'", "TIMESTAMP'2024-03-10 02:30:00'", "DATE'2024-03-10'")),
            )
        text = random.choice(self._after_texts(call))
        result = expr(call.type if "cast" not in text else "string", *_fill(text, call, call))
        if random.random() < 0.15 and is_number(call.type) and text in NUMBER_AFTER[:14]:
            return expr(call.type, *_fill(random.choice(NUMBER_AFTER), expr(call.type, "(", result, ")")))
        return result

    def _after_texts(self, call: Expr) -> tuple[str, ...]:
        type = call.type
        if self._random.random() < 0.15:
            return ANY_AFTER
        if is_number(type):
            return SMOOTH_AFTER if _is_approximate(call) else NUMBER_AFTER
        if type.startswith("string"):
            return TEXT_AFTER
        if type in ("date", "timestamp", "timestamp_ntz"):
            return TIME_AFTER
        return ANY_AFTER

    def _having(self, keys: tuple[Expr, ...]) -> Expr | None:
        random = self._random
        if random.random() < 0.7:
            return None
        draw = random.random()
        if draw < 0.03:
            return expr("boolean", random.choice(("NULL", "true", "false", "1 > 0")))
        if draw < 0.25:
            return self._window_condition()
        if draw < 0.35 and keys:
            return expr("boolean", random.choice(keys), random.choice((" IS NOT NULL", " IS NULL")))
        call, unordered = self._aggregate()
        if unordered or not is_number(call.type) or _is_approximate(call):
            return expr("boolean", call, random.choice((" IS NOT NULL", " IS NULL")))
        return expr("boolean", *_fill(random.choice(HAVING_TESTS), call))

    def _window_condition(self) -> Expr:
        """A time among the rows, as text of the wall clock somewhere."""
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            microseconds=self._table.base + self._random.randint(0, 60) * SECOND
        )
        shifted = moment + timedelta(hours=self._random.choice((0, 0, -5, -4, 5.5)))
        text = shifted.strftime("%Y-%m-%d %H:%M:%S")
        return expr("boolean", self._random.choice(WINDOW_TESTS).format(text))

    def _named(self, columns: list[OutputColumn]) -> tuple[OutputColumn, ...]:
        """Aliases: mostly one's own, some that need quotes, none for some, and rarely one twice."""
        random, named = self._random, []
        for i, column in enumerate(columns):
            draw = random.random()
            if draw < 0.01:
                alias: str | None = "c0"
            elif draw < 0.08:
                alias = random.choice((f"`c {i}`", f"`größe {i}`", f"C{i}", f"`c``{i}`", f"`c.{i}`"))
            elif draw < 0.16 or (column.alias is None and draw < 0.7):
                alias = None
            else:
                alias = f"c{i}"
            named.append(OutputColumn(column.value, alias, column.unordered))
        return tuple(named)


def is_summed(value: Expr) -> bool:
    """Whether Spark has a sum of it that is exact, or an error."""
    return value.type in (*INTEGERS, "string") or value.type.startswith(("decimal", "interval day"))


def _is_approximate(call: Expr) -> bool:
    return call.sql.startswith((*MOMENTS, *PAIRS, "median", "percentile"))


def _fill(text: str, *values: Expr) -> list[str | Expr]:
    """The text with its `{}` replaced in turn, and `{0}` by the first.

    >>> [str(part) for part in _fill("{} > {0}", expr("int", "k"))]
    ['', 'k', ' > ', 'k', '']
    """
    parts: list[str | Expr] = []
    pieces, used = text.replace("{0}", "\0").replace("{}", "\1"), 0
    held = ""
    for letter in pieces:
        if letter in "\0\1":
            parts += [held, values[0] if letter == "\0" else values[min(used, len(values) - 1)]]
            used += letter == "\1"
            held = ""
        else:
            held += letter
    return [*parts, held]


def _summed(name: str, type: str) -> str:
    if name.endswith(("avg", "mean")):
        return type if type.startswith("decimal") else "double"
    if type in INTEGERS:
        return "bigint"
    return "double" if type in ("float", "string") else type
