"""Components: the parts of a partial, each combined by itself and shared by every aggregate that needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.aggregates.combining import ValueList
from weft.aggregates.kind import KINDS, Algebra, Kind


@dataclass(frozen=True, slots=True)
class Component:
    """A kind over arguments (Spark SQL). Equal components are kept once for all queries."""

    kind: str
    arguments: tuple[str, ...] = ()
    setting: int = 0
    """The size limit of a sketch, in the unit of its kind."""

    @property
    def definition(self) -> Kind:
        return KINDS[self.kind]

    @property
    def lifts(self) -> tuple[str, ...]:
        return self._with_setting(self.definition.lift)

    @property
    def merges(self) -> tuple[str, ...]:
        return self._with_setting(self.definition.merge)

    def row_of(self, texts: Mapping[str, str]) -> tuple[str, ...]:
        """A row as a partial: SQL texts over the arguments."""
        return tuple(text.format(*(texts[a] for a in self.arguments)) for text in self.definition.row)

    @property
    def keeps_values(self) -> bool:
        """Whether a partial has no fixed size."""
        return isinstance(self.definition.combine, ValueList)

    @property
    def points(self) -> int | None:
        """The most values in a partial that keeps some; None: there is no limit."""
        combine = self.definition.combine
        if not isinstance(combine, ValueList) or combine.points is None:
            return None
        return combine.points(self.setting)

    @property
    def width(self) -> int:
        return self.definition.width

    @property
    def algebra(self) -> Algebra:
        return self.definition.algebra

    def _with_setting(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text.replace("{setting}", str(self.setting)) for text in texts)
