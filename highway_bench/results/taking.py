"""Taking: what a store can take its cells from, and what it took."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol


class Rows(Protocol):
    """Cells and runs that a store can take: another store, or an exported file."""

    def times(self) -> dict[str, set[str]]:
        """By digest, the times of the last result and of a later attempt that measured less."""

    def values(self, digests: Collection[str]) -> Iterable[tuple[Any, ...]]:
        """The rows of these cells, each as its values in the order of ``COLUMNS``."""

    def runs(self) -> dict[str, dict[str, Any]]:
        """Every run's provenance by its id."""


@dataclass(frozen=True)
class Taken:
    """Cells of another store: ``added`` here, ``replaced`` what was here, the ``same`` as here, or ``older`` than here
    and left out."""

    added: int = 0
    replaced: int = 0
    same: int = 0
    older: int = 0

    @property
    def changed(self) -> int:
        return self.added + self.replaced
