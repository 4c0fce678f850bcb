"""Edge classes: what they keep, and which slice an instant is in."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from weft.model import Edges, Window

classes = st.lists(
    st.integers(1, 18).flatmap(lambda slide: st.tuples(st.just(slide), st.integers(-40, 40))), min_size=1, max_size=5
)
seeded = settings(derandomize=True, deadline=None)


def has(edges: Edges, time: int) -> bool:
    return any((time - shift) % slide == 0 for slide, shift in edges.classes)


@seeded
@given(classes)
def test_dropping_contained_classes_drops_no_edge_and_leaves_none_to_drop(drawn: list[tuple[int, int]]) -> None:
    edges = Edges.of_classes(drawn)
    for time in range(-60, 60):
        assert has(edges, time) == any((time - shift) % slide == 0 for slide, shift in drawn)
    for slide, shift in edges.classes:
        assert 0 <= shift < slide
        assert not any(slide % s == 0 and shift % s == h for s, h in edges.classes if (s, h) != (slide, shift))


@seeded
@given(classes, st.integers(-100, 100))
def test_a_slice_begins_at_the_last_edge_and_ends_at_the_next(drawn: list[tuple[int, int]], time: int) -> None:
    edges = Edges.of_classes(drawn)
    begin, end = edges.floor(time), edges.next(time)
    assert begin <= time < end
    assert has(edges, begin)
    assert has(edges, end)
    assert not any(has(edges, t) for t in range(begin + 1, end))


@seeded
@given(classes)
def test_the_granule_has_all_edges(drawn: list[tuple[int, int]]) -> None:
    edges = Edges.of_classes(drawn)
    slide, shift = edges.granule
    assert all((time - shift) % slide == 0 for time in range(-60, 60) if has(edges, time))


@seeded
@given(classes, classes)
def test_a_union_contains_both(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    one, two = Edges.of_classes(left), Edges.of_classes(right)
    assert (one | two).contains(one)
    assert (one | two).contains(two)
    assert (one | two) == (two | one)


def test_a_multiple_of_a_slide_is_within_it_only_at_the_same_residue() -> None:
    assert Edges(((3, 0),)).contains(Edges(((6, 3),)))
    assert not Edges(((3, 0),)).contains(Edges(((6, 2),)))
    assert not Edges(((6, 3),)).contains(Edges(((3, 0),)))


def test_edges_that_only_several_classes_have_together_do_not_count_as_contained() -> None:
    halves = Edges.of_classes([(4, 0), (4, 2)])
    assert all(has(halves, time) for time in range(0, 40, 2))
    assert not halves.contains(Edges(((2, 0),)))


def test_windows_of_a_tree_contribute_their_classes() -> None:
    windows = [Window(12, 9), Window(10, 6), Window(18, 18)]
    assert Edges.of(windows).classes == ((6, 0), (6, 4), (9, 0), (9, 3))
    assert Edges.of(windows).period == 18
