"""Expressions on Arrow columns, as Spark evaluates them: a branch is computed only for the rows that take it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.engine.project.arithmetic import DIVISIONS, arithmetic, signed
from weft.engine.project.bind import digits
from weft.engine.project.casts import cast, float_to_decimal
from weft.engine.project.compare import compare, extreme
from weft.engine.project.decimals import Mask, valid_mask
from weft.engine.project.expression import Typed
from weft.engine.project.literals import parse_literal
from weft.engine.project.math import real
from weft.engine.project.rounding import floor_or_ceil, rounded
from weft.engine.project.types import TypeKind, kind

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LeafColumns:
    """The columns of the leaves of a query's expressions; all arrays have `rows` rows."""

    rows: int
    calls: Sequence[pa.Array] = ()
    keys: Sequence[pa.Array] = ()
    window_start: pa.Array | None = None
    window_end: pa.Array | None = None
    window: pa.Array | None = None


def evaluate(node: Typed, columns: LeafColumns, *, ansi: bool) -> pa.Array:
    """The node's value for every row; a plain leaf is the column itself, not a copy."""
    return _Evaluation(columns, None, ansi).value(node)


_LEAVES = ("call", "key", "window", "window_start", "window_end", "literal")
_REALS = ("sqrt", "exp", "ln", "log10", "log2", "sign", "power")
_ARITHMETIC = ("add", "sub", "mul", "div", "mod", "int_div")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_LOGIC = ("and", "or", "not", "is_null", "is_not_null", "case", "if", "coalesce", "nullif", "greatest", "least")
SAFE = frozenset({*_LEAVES, *_REALS, *_COMPARISONS, "null_safe_eq", *_LOGIC})
"""Operations that never raise by themselves, except comparisons of decimals that do not fit 38 digits together."""


def _may_raise(node: Typed) -> bool:
    own = node.op not in SAFE or any(kind(arg.type) is TypeKind.DECIMAL for arg in node.args)
    return own or any(_may_raise(arg) for arg in node.args)


class _Evaluation:
    """Evaluates over `columns`, or over the chosen rows of them."""

    def __init__(self, columns: LeafColumns, chosen: Rows | None, ansi: bool) -> None:
        self.columns, self.chosen, self.ansi = columns, chosen, ansi
        self.rows = columns.rows if chosen is None else len(chosen)

    def value(self, node: Typed) -> pa.Array:
        if node.op in _LAZY:
            return _LAZY[node.op](self, node)
        if node.op == "literal":
            return pa.repeat(parse_literal(node.value, node.type), self.rows)
        if not node.args:
            return self._leaf(node)
        if node.op == "round":
            return rounded(node, self.value(node.args[0]), digits(node), self.ansi)
        return _EAGER[node.op](node, self._operands(node), self.ansi)

    def _leaf(self, node: Typed) -> pa.Array:
        if node.op in ("call", "key"):
            assert isinstance(node.value, int)
            array = (self.columns.calls if node.op == "call" else self.columns.keys)[node.value]
        else:
            array = getattr(self.columns, node.op)
        if self.chosen is not None:
            array = array.take(pa.array(self.chosen))
        return array if array.type == node.type else array.cast(node.type)

    def _operands(self, node: Typed) -> list[pa.Array]:
        """Spark does not evaluate a second operand where the first is NULL; division begins with the divisor."""
        if len(node.args) != 2 or node.op not in _STRICT:
            return [self.value(arg) for arg in node.args]
        order = (1, 0) if node.op in DIVISIONS else (0, 1)
        first = self.value(node.args[order[0]])
        valid = valid_mask(first)
        second_node = node.args[order[1]]
        if valid is None or not _may_raise(second_node):
            second = self.value(second_node)
        else:
            second = self.scatter([(valid, second_node)], second_node.type)
        return [first, second] if order == (0, 1) else [second, first]

    def among(self, mask: Mask) -> _Evaluation:
        rows = np.flatnonzero(mask)
        return _Evaluation(self.columns, rows if self.chosen is None else self.chosen[rows], self.ansi)

    def as_type(self, node: Typed, type: pa.DataType) -> pa.Array:
        return cast(self.value(node), type, ansi=self.ansi, sql=node.sql)

    def scatter(self, branches: Sequence[tuple[Mask, Typed]], type: pa.DataType) -> pa.Array:
        """Each branch on its rows, NULL where no branch has a row; the masks do not overlap."""
        parts, sources, covered = [], np.zeros(self.rows, np.int64), np.zeros(self.rows, np.bool_)
        begin = 0
        for mask, node in branches:
            if mask.all():
                return self.as_type(node, type)
            if not mask.any():
                continue
            parts.append(self.among(mask).as_type(node, type))
            sources[mask] = np.arange(begin, begin + len(parts[-1]))
            begin += len(parts[-1])
            covered |= mask
        if not parts:
            return pa.nulls(self.rows, type)
        return pa.concat_arrays(parts).take(pa.array(sources, mask=None if covered.all() else ~covered))

    def true(self, node: Typed, among: Mask) -> Mask:
        """Which of the rows in `among` make the condition true."""
        answer = np.zeros(self.rows, np.bool_)
        if among.all():
            return np.asarray(self._condition(node))
        if among.any():
            answer[among] = self.among(among)._condition(node)
        return answer

    def _condition(self, node: Typed) -> Mask:
        value = self.as_type(node, pa.bool_())
        return np.asarray(value.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _case(run: _Evaluation, node: Typed) -> pa.Array:
    """`case` and `if`: conditions in order, each on the rows that no earlier one took."""
    remaining = np.ones(run.rows, np.bool_)
    branches: list[tuple[Mask, Typed]] = []
    pairs = len(node.args) // 2
    for condition, value in zip(node.args[: 2 * pairs : 2], node.args[1 : 2 * pairs : 2], strict=True):
        taken = run.true(condition, remaining)
        branches.append((taken, value))
        remaining = remaining & ~taken
    branches += [(remaining, rest) for rest in node.args[2 * pairs :]]
    return run.scatter(branches, node.type)


def _coalesce(run: _Evaluation, node: Typed) -> pa.Array:
    best = run.as_type(node.args[0], node.type)
    for arg in node.args[1:]:
        valid = valid_mask(best)
        if valid is None:
            break
        best = pc.coalesce(best, run.scatter([(~valid, arg)], node.type))
    return best


def _nullif(run: _Evaluation, node: Typed) -> pa.Array:
    same = Typed("eq", pa.bool_(), node.args, sql=node.sql)
    value = run.as_type(node.args[0], node.type)
    equals = compare(same, run._operands(same), run.ansi).fill_null(False)
    return pc.if_else(equals, pa.scalar(None, node.type), value)


def _connective(run: _Evaluation, node: Typed) -> pa.Array:
    """`and`, `or` in three-valued logic; the right side only where the left does not decide."""
    left = run.as_type(node.args[0], pa.bool_())
    if _may_raise(node.args[1]):
        decided = left.fill_null(node.op == "and") if node.op == "and" else pc.invert(left.fill_null(False))
        undecided = np.asarray(decided.to_numpy(zero_copy_only=False), dtype=np.bool_)
        right = run.scatter([(undecided, node.args[1])], pa.bool_())
    else:
        right = run.as_type(node.args[1], pa.bool_())
    return pc.and_kleene(left, right) if node.op == "and" else pc.or_kleene(left, right)


def _not(node: Typed, args: list[pa.Array], ansi: bool) -> pa.Array:
    return pc.invert(cast(args[0], pa.bool_(), ansi=ansi, sql=node.sql))


def _is_null(node: Typed, args: list[pa.Array], ansi: bool) -> pa.Array:
    return args[0].is_null() if node.op == "is_null" else args[0].is_valid()


def _cast(node: Typed, args: list[pa.Array], ansi: bool) -> pa.Array:
    if kind(args[0].type) is TypeKind.FLOAT and kind(node.type) is TypeKind.DECIMAL:
        return float_to_decimal(args[0], node.type, ansi=ansi, sql=node.sql, old_java=node.old_java)
    return cast(args[0], node.type, ansi=ansi, sql=node.sql)


_LAZY: dict[str, Callable[[_Evaluation, Typed], pa.Array]] = {
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "and": _connective,
    "or": _connective,
}
_STRICT = frozenset({*_ARITHMETIC, *_COMPARISONS, "power"})
_EAGER: dict[str, Callable[[Typed, list[pa.Array], bool], pa.Array]] = {
    **dict.fromkeys(_ARITHMETIC, arithmetic),
    **dict.fromkeys(("neg", "abs"), signed),
    **dict.fromkeys((*_COMPARISONS, "null_safe_eq"), compare),
    **dict.fromkeys(("greatest", "least"), extreme),
    **dict.fromkeys(("floor", "ceil"), floor_or_ceil),
    **dict.fromkeys(_REALS, real),
    **dict.fromkeys(("is_null", "is_not_null"), _is_null),
    "not": _not,
    "cast": _cast,
}
