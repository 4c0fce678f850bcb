"""Relations, configurations and the feeding graph: written, read, refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.optimizer.phantoms import (
    Configuration,
    FeedingGraph,
    InvalidConfiguration,
    InvalidNotation,
    Relation,
    TableNode,
    parse,
    read,
    show,
)
from weft.optimizer.phantoms.feeding_graph import CANDIDATE_LIMIT

PAPER = [
    "ABCD(AB BCD(BC BD CD))",
    "ABCD(AC(A C) BD(B D))",
    "ABC(AB BC) BD CD",
    "ABCD(ABC(AC(A C) B) D)",
    "AB(A B)",
]


@pytest.mark.parametrize("text", PAPER)
def test_the_papers_configurations_are_read_and_printed(text: str) -> None:
    found = parse(text)
    assert str(found) == text
    leaves = {table.relation for table in found.tables if not table.children}
    assert found.queries == leaves
    assert found.phantoms == set(found.relations) - leaves


def test_names_of_several_letters_stand_in_brackets() -> None:
    found = parse("[src,dst,port]([src,dst] [port])")
    assert found.phantoms == {frozenset({"src", "dst", "port"})}
    assert str(found) == "[dst,port,src]([dst,src] [port])"
    assert show(frozenset({"a`b, c"})) == "[`a``b, c`]"


relations = st.frozensets(st.text(min_size=1, max_size=4) | st.sampled_from("ABC"), max_size=4)


@given(relations)
def test_any_relation_reads_back(relation: Relation) -> None:
    assert read(show(relation)) == relation


@st.composite
def forests(draw: st.DrawFn) -> Configuration:
    """Each relation hangs below one drawn before it that contains it, or below the stream."""
    drawn = draw(st.lists(relations, min_size=1, max_size=8, unique=True))
    drawn.sort(key=lambda r: (-len(r), sorted(r)))
    parents: dict[Relation, Relation | None] = {}
    for relation in drawn:
        parents[relation] = draw(st.sampled_from([None, *(r for r in parents if relation < r)]))
    feeding = {parent for parent in parents.values() if parent is not None}
    unasked = draw(st.sets(st.sampled_from(sorted(feeding, key=sorted)))) if feeding else set()
    return Configuration.of(parents, set(drawn) - unasked)


@given(forests())
def test_any_configuration_reads_back(configuration: Configuration) -> None:
    again = parse(str(configuration))
    assert again == configuration
    assert (again.queries, again.parents) == (configuration.queries, configuration.parents)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("AB(A B", 3, "not closed"),
        ("AB(A B))", 8, "closes nothing"),
        ("AB()", 4, "a relation should stand here"),
        ("", 1, "a relation should stand here"),
        ("AB(A,B)", 5, "a relation should begin here"),
        ("AA", 1, "named twice"),
        ("[src;dst]", 5, "a comma or a closing bracket"),
        ("[src,]", 6, "an attribute should begin here"),
    ],
)
def test_what_is_no_configuration_is_refused_with_its_place(text: str, place: int, problem: str) -> None:
    with pytest.raises(InvalidNotation, match=f"column {place}: .*{problem}"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "problem"), [("AB(C)", "AB cannot feed C"), ("AB(AB)", "AB cannot feed AB"), ("AB(A) A", "two tables")]
)
def test_what_cannot_feed_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidConfiguration, match=problem):
        parse(text)


def test_a_phantom_that_feeds_nothing_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="AB is no query and feeds none"):
        Configuration((TableNode(read("AB"), is_query=False),))


def test_leaving_out_a_table_feeds_its_children_from_above() -> None:
    assert str(parse("ABCD(AB BCD(BC BD CD))").without(read("BCD"))) == "ABCD(AB BC BD CD)"
    assert str(parse("ABC(AB BC) BD").without(read("ABC"))) == "AB BC BD"


def test_the_feeding_graph_of_figure_4() -> None:
    graph = FeedingGraph.of(map(read, ("AB", "BC", "BD", "CD")))
    assert str(graph) == "ABCD -> ABC ABD BCD\nABC -> AB BC\nABD -> AB BD\nBCD -> BC BD CD"


def test_queries_that_contain_others_are_no_phantoms() -> None:
    graph = FeedingGraph.of(map(read, ("A", "AB", "B", "C")))
    assert [show(r) for r in graph.phantoms] == ["ABC", "AC", "BC"]


def test_many_group_bys_have_a_limited_number_of_candidates_and_their_union() -> None:
    names = [f"k{n}" for n in range(30)]
    graph = FeedingGraph.of(frozenset({name}) for name in names)
    assert len(graph.phantoms) <= CANDIDATE_LIMIT
    assert frozenset(names) in graph.phantoms
    assert sum(len(r) == 2 for r in graph.phantoms) == 30 * 29 // 2
