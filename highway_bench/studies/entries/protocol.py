"""The protocol of entries: the columns in which a block is compared with pre-norm, and its trainings and timings.

In each column every start of the block tries rates around pre-norm's with one seed; the better start trains with five
fresh seeds at its best rate. Pre-norm trains with the same seeds at its committed rate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from highway_bench.blocks import blocks
from highway_bench.cell import Cell, canonical
from highway_bench.data import make_dataset
from highway_bench.frames.rows import block_label, rows_of, without_init
from highway_bench.plan.settings import FRESH_SEEDS
from highway_bench.report.choice.answers import known_answers, known_finals
from highway_bench.report.choice.columns import IDENTITY, RANKED
from highway_bench.report.choice.ranking import LayerKind, kind_of, rows_of_kind
from highway_bench.studies.decide.candidate import REFERENCE, TUNING_SEEDS, Candidate, Trainings, around, starts_of
from highway_bench.studies.decide.evidence import RankedProtocol
from highway_bench.studies.decide.protocol import cost_cells, get_part
from highway_bench.studies.decide.rounds import Trainer
from highway_bench.tasks.from_cell import cell_family

VERSION: Final = 1
"""Raised where the rules change. ``protocol_name`` has what pre-norm's finals add to it."""
PLACES: Final = (
    ("dense", "dense", 50),
    ("resnet", "resnet", 10),
    ("vision", "transformer", 10),
    ("language", "transformer", 6),
)
"""Part of decide, family and depth of each column, the cheapest first."""
NOT_FOR_IT: Final = "not for this layer"


@dataclass(frozen=True)
class EntryColumn:
    """A kind of layer at a depth. ``row`` is pre-norm's in the wide table of committed rows, and ``reference`` its
    candidate; ``missing`` says why nothing can be measured here, if so."""

    kind: LayerKind
    depth: int
    reference: Candidate
    row: Mapping[str, Any]
    missing: str = ""

    @property
    def label(self) -> str:
        return f"{self.kind.label}, {self.depth}"

    def without(self, block: str) -> str:
        """Why ``block`` is not measured here; empty if it is."""
        refused = blocks.get(block).refusal(cell_family(self.reference.template)) is not None
        return NOT_FOR_IT if refused else self.missing

    def candidates(self, block: str) -> list[Candidate]:
        """The starts of ``block`` here; none where it is not measured."""
        if self.without(block):
            return []
        template = self.reference.template
        own = template.but(block=block, start=None, width=template.nominal_width)
        words: dict[str, Any] = {"more": (), "tuning": TUNING_SEEDS[:1]}
        return starts_of(own, (self.depth,), around(self.row["rate"]), **words)

    def reference_cells(self) -> list[Cell]:
        """Pre-norm at its committed rate."""
        return [self.reference.run(self.depth, self.row["rate"], seed) for seed in range(FRESH_SEEDS)]

    def committed(self) -> dict[int, float]:
        """Pre-norm's committed held-out losses by seed, of the seeds that an entry has."""
        finals = known_finals()
        own = finals[(finals[list(IDENTITY)] == [self.row.get(name) for name in IDENTITY]).all(axis=1)]
        own = own[own["held_out"].notna() & own["seed"].lt(FRESH_SEEDS)]
        return {row["seed"]: row["held_out"] for row in rows_of(own)}


def entry_columns() -> list[EntryColumn]:
    """Every column of the protocol."""
    return [_column(*place) for place in PLACES]


def protocol_name(columns: Sequence[EntryColumn]) -> str:
    """The version with a hash of the columns and of pre-norm's finals in them: entries of other names stand apart."""
    facts = [[one.label, one.row.get("rate"), sorted(one.committed().items())] for one in columns]
    return f"{VERSION}-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:8]}"


def _column(part: str, family: str, depth: int) -> EntryColumn:
    every = [one for one in get_part(part).candidates if one.template.block == REFERENCE]
    starts = {one.template.start: one for one in every if one.template.family == family}
    template = next(iter(starts.values())).template
    kind = kind_of(block_label(family, without_init(canonical(template.family_options))), str(template.dataset))
    known = rows_of_kind(known_answers(), kind)
    known = known[known["connection"].eq(REFERENCE) & known["depth"].eq(depth) & known["outcome"].isin(RANKED)]
    alike = known["steps"].eq(template.recipe["steps"]) & known["plain_width"].eq(template.nominal_width)
    rows = rows_of(known[alike & known["start"].isin(list(starts))].sort_values("held_out"))
    if not rows:
        return EntryColumn(kind, depth, next(iter(starts.values())), {}, "not known yet")
    missing = make_dataset(str(template.dataset), **template.recipe.get("dataset", {})).missing()
    return EntryColumn(kind, depth, starts[rows[0]["start"]], rows[0], "its data is missing" if missing else "")


@dataclass(frozen=True)
class EntryWork:
    """The cells of an entry of ``block`` in ``columns``."""

    block: str
    columns: Sequence[EntryColumn]

    @property
    def missing(self) -> dict[str, str]:
        """The columns in which the block is not measured, and why."""
        return {one.label: why for one in self.columns if (why := one.without(self.block))}

    def protocols(self) -> Iterator[tuple[EntryColumn, RankedProtocol]]:
        """The columns in which the block is measured, each as a part of decide."""
        for one in self.columns:
            if candidates := one.candidates(self.block):
                yield one, RankedProtocol("entry", tuple(candidates))

    def pending(self, trainings: Trainings) -> list[Cell]:
        """The trainings to make next, pre-norm's and the block's, in every column."""
        cells = [cell for column, _ in self.protocols() for cell in column.reference_cells() if cell not in trainings]
        return cells + [cell for _, part in self.protocols() for cell in part.pending(trainings)]

    def usual_cells(self) -> list[Cell]:
        """The trainings if the middle rate is the best and every run trains."""
        cells = [cell for column, _ in self.protocols() for cell in column.reference_cells()]
        return cells + [cell for _, part in self.protocols() for cell in part.usual_cells()]

    def measure(self, trainer: Trainer) -> None:
        """Train, then time and count the block's better start and pre-norm in turn."""
        trainings = trainer.train(self.pending)
        parts = [(column, part.better_starts(trainings)) for column, part in self.protocols()]
        for column, better in parts:
            cells = [cell for one in (column.reference, *better) for cell in cost_cells(one)]
            cells = [cell for cell in cells if cell.depth == column.depth]
            rows = trainer.measure(cells).rows
            if rows.loc[rows["task"].eq("throughput"), "run_id"].nunique() > 1:  # a ratio is of steps taken in turn
                replace(trainer, rerun="throughput").measure(cells)
