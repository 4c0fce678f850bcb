"""Filters on one column are intervals of places between their limits, whatever the limits and the value."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import integers, lists, none, one_of, sampled_from, tuples

from weft.sql.range_filters import Range, ranges

COLUMNS, NUMBERS = sampled_from(["a", "b"]), integers(-9, 9)
FILTERS = one_of(
    tuples(COLUMNS, sampled_from([">", ">=", "<", "<="]), NUMBERS).map(lambda f: "{} {} {}".format(*f)),
    tuples(COLUMNS, NUMBERS, NUMBERS).map(lambda f: "{} BETWEEN {} AND {}".format(*f)),
    tuples(COLUMNS, NUMBERS, NUMBERS).map(lambda f: "{0} > {1} AND {0} < {2}".format(*f)),
)
VALUES = one_of(none(), integers(-11, 11))


def passes(text: str, row: dict[str, int | None]) -> bool:
    if any(row[name] is None for name in row if name in text.split()):
        return False
    if "BETWEEN" in text:
        column, _, low, _, high = text.split()
        text = f"{column} >= {low} and {column} <= {high}"
    return bool(eval(text.replace("AND", "and"), {}, row))


def number(found: Range, row: dict[str, int | None]) -> int:
    outcomes = [passes(test, row) for test in found.tests]
    assert outcomes == sorted(outcomes, reverse=True)
    if found.nulls_pass and row[found.tests[0].split()[0]] is None:
        return 0
    return found.numbers[sum(outcomes)]


@given(drawn=lists(FILTERS, min_size=1, unique=True), more=lists(FILTERS), a=VALUES, b=VALUES)
def test_a_rows_number_says_which_filters_it_passes(
    drawn: list[str], more: list[str], a: int | None, b: int | None
) -> None:
    row = {"a": a, "b": b}
    found = ranges(drawn)
    finer = {each.key: each for each in ranges(sorted({*drawn, *more}))}
    assert sorted(text for each in found for text in each.intervals) == sorted(drawn)
    for each in found:
        mine = number(each, row)
        for text in each.intervals:
            least, most = each.bounds(text)
            assert (least <= mine <= most) == passes(text, row)
        assert (mine > 0) == any(passes(text, row) for text in each.intervals)
        wider = finer[each.key]
        assert each.numbers_of(wider)[number(wider, row)] == mine


def test_only_what_no_type_of_a_column_can_change_is_put_in_order() -> None:
    apart = ["x > 1", "x > 1.5", "x > 1e3", "x > 'a'", "x > y", "x > 1 OR x > 2", "x > 16777217", "x = 5", "y > 1"]
    assert [len(each.intervals) for each in ranges(apart)] == [1] * len(apart)


def test_what_stands_before_a_comparison_stays_before_it_and_must_be_the_same() -> None:
    found = ranges(["k = 'a' AND x > 5", "k = 'b' AND x > 3", "k = 'a' AND x > 3", "x > 3 AND k = 'a'"])
    assert [(each.guards, each.tests) for each in found] == [
        (("(k = 'a')",), ("x > 3", "x > 5")),
        (("(k = 'b')",), ("x > 3",)),
        ((), ("x > 3 AND k = 'a'",)),
    ]
