"""Checks of a block against its contract, family by family: ``highway-bench check``, and in Python ``check_block``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from highway_bench.block_contract import CHECKS, ContractBroken, Subject, words_of
from highway_bench.blocks import Block, blocks
from highway_bench.cell import DEPTH_AWARE
from highway_bench.errors import USER_ERRORS
from highway_bench.execution.preflight import preflight
from highway_bench.families import AnyLayer, as_family, select_families
from highway_bench.families.seeding import seeded
from highway_bench.terminal import prints_to_stderr

NO_START = "no depth-aware start, which others have: starts=(PUBLISHED, SCALED_BRANCH) scales the last map by 1/√L"


@dataclass(frozen=True)
class CheckResult:
    """The result of one check of a block in one family. ``problem`` is ``None`` where it passed."""

    check: str
    family: str
    problem: str | None
    note: str | None = None


def check_block(name: str | type[Block], *, in_families: Sequence[AnyLayer] = ("*",)) -> list[CheckResult]:
    """Check the block ``name``, or its class, against the contract in each family that it can join: a name with
    wildcards, ``module:factory``, or a function from a width to a module.

    Raises ``UnknownName`` for an unknown name, and ``BadInput`` for a user's layer that cannot be measured under it, or
    where the block can join none of the families.
    """
    spec = blocks.get(name) if isinstance(name, str) else name.spec
    given = [in_families] if isinstance(in_families, str) or callable(in_families) else in_families
    names = (select_families(one) if isinstance(one, str) else [one] for one in given)
    every = [Subject(spec, as_family(one)) for some in names for one in some]
    subjects = [one for one in every if spec.refusal(one.family) is None]
    if not subjects:
        spec.check_family(every[0].family)
    preflight(subject.cell for subject in subjects)
    with prints_to_stderr():
        return [result for subject in subjects for result in check_results(subject)]


def check_results(subject: Subject) -> Iterator[CheckResult]:
    """The results of all checks of one block in one family; only the first if the block cannot be built."""
    for remark in subject.family.remarks:
        yield CheckResult("user's layer", subject.family.name, None, remark)
    if subject.spec.group == "own" and DEPTH_AWARE not in {start.name for start in subject.spec.starts}:
        yield CheckResult("starts", subject.family.name, None, NO_START)
    for check in CHECKS:
        label = check.__name__.replace("_", " ")
        try:
            with seeded(0):
                note = check(subject)
        except ContractBroken as broken:
            yield CheckResult(label, subject.family.name, str(broken))
        except USER_ERRORS as error:  # an error in the block's own code is a result as well
            yield CheckResult(label, subject.family.name, words_of(error))
        else:
            yield CheckResult(label, subject.family.name, None, note)
            continue
        if check is CHECKS[0]:
            return
