"""Queries with SLIDE AT MOST, and a job that refreshes them at costs that are always the same."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from weft.model import Window
from weft.model.refresh import interval
from weft.schedule import AtMostQuery, Schedule, choose

MINUTE = 60_000_000


def asked(name: str, length: int, slide: int, kind: str = "x", asks: str = "") -> AtMostQuery:
    window = Window(length * MINUTE, slide * MINUTE)
    step = interval(window)
    return AtMostQuery(name, (f"{kind} every {step}",), asks or name, window, step)


@st.composite
def workloads(draw: st.DrawFn) -> list[AtMostQuery]:
    drawn = draw(
        st.lists(st.tuples(st.sampled_from("xy"), st.integers(1, 9), st.integers(0, 30)), min_size=1, max_size=8)
    )
    return [asked(f"q{i}", slide + more, slide, kind) for i, (kind, slide, more) in enumerate(drawn)]


class Job:
    """Batches that move the watermark, with costs that are always the same."""

    def __init__(self, queries: Sequence[AtMostQuery], scan: float = 1.0, answer: float = 0.1) -> None:
        self.queries, self.scan, self.answer = queries, scan, answer
        self.schedule, self.watermark = Schedule(), None
        self.ends: dict[str, list[int]] = {q.name: [] for q in queries}
        self.latest: dict[str, list[int]] = {q.name: [] for q in queries}
        """How late each query was after each batch."""

    def batch(self, watermark: int, grant: float | None) -> float:
        """What it took to refresh."""
        chosen = choose(self.queries, self.schedule, self.watermark, watermark)
        assert chosen == choose(self.queries, self.schedule, self.watermark, watermark)
        by_name = {q.name: q for q in self.queries}
        kinds = {kind for name in chosen.refresh for kind in by_name[name].reads}
        for name, refresh in chosen.refresh.items():
            first = refresh.last if refresh.first is None else refresh.first
            kept = -1 if self.watermark is None else self.watermark - self.watermark % by_name[name].interval
            assert kept <= first <= refresh.last <= watermark, "its slices are no longer kept, or not yet there"
            ends = range(first, refresh.last + 1, refresh.step)
            assert not any(end % by_name[name].interval for end in ends)
            self.ends[name] += ends
        scans, answers = dict.fromkeys(kinds, self.scan), dict.fromkeys(chosen.refresh, self.answer)
        self.schedule, self.watermark = chosen.after.measured(scans, answers, grant), watermark
        for query in self.queries:
            self.latest[query.name].append(query.lateness(self.schedule.answered[query.name], watermark))
        return self.scan * len(kinds) + self.answer * sum(r.count for r in chosen.refresh.values())
