"""The window of a query: where it begins, its length, and its slide."""

from __future__ import annotations

from dataclasses import dataclass

from weft.model.errors import WeftError


class InvalidWindow(WeftError):
    """A window that Spark would refuse, or that would leave rows unseen."""


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """Windows begin at `offset + k * slide` and cover `[begin, begin + length)`, in microseconds.

    >>> Window(length=12, slide=9).shifts        # where its slices are cut, modulo the slide
    (0, 3)
    """

    length: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.length < 1 or self.slide < 1:
            raise InvalidWindow(f"range and slide must be at least a microsecond, got {self.length} and {self.slide}")
        if self.slide > self.length:
            raise InvalidWindow(
                f"slide must be between 1 and the range {self.length}, got {self.slide}; "
                "a longer slide would leave rows that no window ever sees"
            )
        if abs(self.offset) >= self.slide:
            raise InvalidWindow(f"offset must be shorter than the slide {self.slide}, got {self.offset}")

    @property
    def shifts(self) -> tuple[int, ...]:
        """Residues modulo the slide where a window begins or ends, ascending."""
        return tuple(sorted({self.offset % self.slide, (self.offset + self.length) % self.slide}))

    @property
    def classes(self) -> tuple[tuple[int, int], ...]:
        """The same as (slide, shift) pairs: an edge lies at every `shift + k * slide`."""
        return tuple((self.slide, shift) for shift in self.shifts)

    def edges(self, until: int) -> list[int]:
        """The edges in `(0, until]`: a picture for tests and people."""
        return sorted({t for s in self.shifts for t in range(s if s else self.slide, until + 1, self.slide)})

    def first_over(self, time: int) -> int:
        """The number k of the earliest window that covers `time`."""
        return (time - self.offset - self.length) // self.slide + 1

    def last_over(self, time: int) -> int:
        """The number k of the latest window that covers `time`."""
        return (time - self.offset) // self.slide

    def first_begun(self, time: int) -> int:
        """The number k of the earliest window that begins at `time` or later."""
        return -((self.offset - time) // self.slide)

    def begin(self, k: int) -> int:
        return self.offset + k * self.slide

    def end(self, k: int) -> int:
        return self.offset + k * self.slide + self.length

    def last_ended(self, watermark: int) -> int:
        """The number k of the latest window whose end is not after `watermark`."""
        return (watermark - self.offset - self.length) // self.slide
