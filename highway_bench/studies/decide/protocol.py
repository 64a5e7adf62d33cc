"""The parts of the protocol by name, and the costs of their connections.

The costs are the step time and the bytes of every block of the parts that train, at the widths of their trainings. Each
block is measured at its starts, in all of its part's depths: a start may add a scale to a bare sum. The answer's table
reads the costs by family, depth and machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from highway_bench.cell import Cell
from highway_bench.errors import BadInput, UnknownName
from highway_bench.studies.decide import evidence
from highway_bench.studies.decide.candidate import Candidate, Trainings
from highway_bench.studies.decide.language import equal_seconds, language, step_ratios, timing_cells
from highway_bench.studies.decide.part import Protocol, dense, vision
from highway_bench.studies.decide.rounds import Trainer
from highway_bench.tasks.from_cell import cell_family, positions_of

TIMING: Final[dict[str, Any]] = {"seconds": 0, "samples": 7, "processes": 3, "precision": 0.05, "limit": 3}
"""All blocks of these parts take about 40 minutes on two idle cores."""


def costs() -> CostProtocol:
    """Every candidate of these parts."""
    return CostProtocol("costs", (*dense().candidates, *vision().candidates, *language().candidates))


@dataclass(frozen=True)
class CostProtocol(Protocol):
    """Candidates that are not trained, but timed and counted at each of their depths."""

    def pending(self, trainings: Trainings) -> list[Cell]:
        """The cells that are not among ``trainings``. Those of one family and depth are timed in turn."""
        return [cell for one in self.candidates for cell in cost_cells(one) if cell not in trainings]

    def table(self) -> list[dict[str, Any]]:
        """The candidates as records; a cost has no training steps."""
        return [{name: row[name] for name in row if name != "steps"} for row in super().table()]


def cost_cells(candidate: Candidate) -> Iterator[Cell]:
    """By depth, the cells that time a step of a candidate and count its bytes, with the length of its data's
    sequences."""
    template, family = candidate.template, cell_family(candidate.template)
    steps = positions_of(family, template) if family.kind == "sequence" else None
    for depth in candidate.depths:
        step = template.but(depth=depth, seq_len=steps, phase="train-step", dataset=None)
        yield step.but(task="throughput", recipe=TIMING)
        yield step.but(task="memory", recipe={})


def seconds(trainer: Trainer | None) -> Protocol:
    """The part of equal seconds, after the language part has ended and the steps of its blocks are timed."""
    if trainer is None:
        raise BadInput(
            "part 'seconds' has no candidates yet, they follow from the results of language: 'highway-bench decide "
            "--part seconds', without --dry-run, measures both"
        )
    part = language()
    trainings = trainer.train(part.pending)
    cells = timing_cells(part, trainings)
    return equal_seconds(part, trainings, step_ratios(trainer.measure(list(cells.values())), cells))


PARTS: Mapping[str, Callable[..., Protocol]] = {
    "dense": dense,
    "vision": vision,
    "language": language,
    "seconds": seconds,
    "costs": costs,
    "equal-width": evidence.equal_width,
    "resnet": evidence.resnet,
    "long": evidence.long,
    "code": evidence.code,
    "new": evidence.new,
    "deep": evidence.deep,
    "mnist": evidence.mnist,
    "wide": evidence.wide,
}


def get_part(name: str, trainer: Trainer | None = None) -> Protocol:
    """The part called ``name``; raises ``UnknownName`` with near names.

    The candidates of ``seconds`` follow from the results of ``language``, which ``trainer`` trains first. Without a
    trainer, this part raises ``BadInput``.
    """
    if name not in PARTS:
        raise UnknownName("part", name, PARTS)
    return PARTS[name](trainer) if name == "seconds" else PARTS[name]()
