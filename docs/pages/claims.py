"""The published claims on the pages: a line for each, and their numbers by verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from docs.pages.committed import Repetition
from highway_bench.report.format import counted
from highway_bench.reproduce.claims import Claim, Finding, Verdict
from highway_bench.reproduce.power import TARGET

NOT_ALL, NONE = "not all runs ended", "not measured"
GROUPS = (*map(str, Verdict), NOT_ALL, NONE)
"""The groups of claims, in the order of the page."""


def group_of(one: Repetition, finding: Finding) -> str:
    """The verdict on a claim, or why there is none yet."""
    if one.conclusion is None or finding.claim.needs:
        return NONE
    return NOT_ALL if one.conclusion.incomplete else str(finding.verdict)


class ClaimLine(NamedTuple):
    """A line of the table of claims: ``group`` is one of ``GROUPS``, ``key`` the first number, or the reason for none,
    and ``study`` the reproduction that has the details."""

    claim: str
    group: str
    key: str
    study: str

    @property
    def rank(self) -> int:
        """The position of its group in the table."""
        return GROUPS.index(self.group)


def claim_lines(repetitions: Iterable[Repetition]) -> Iterator[ClaimLine]:
    """One line per claim; exact claims of one reproduction with one verdict are one line."""
    for one in repetitions:
        study = one.reproduction.name
        present = {group_of(one, finding) for finding in one.findings}
        if len(present) == 1 and len(one.findings) > 1 and all(finding.claim.exact for finding in one.findings):
            (group,) = present
            yield ClaimLine(one.reproduction.title, group, f"all of {counted(len(one.findings), 'claim')}", study)
            continue
        for finding in one.findings:
            group = group_of(one, finding)
            if group == NONE:
                key = finding.power_text
            elif group == NOT_ALL:
                key = one.conclusion.incomplete
            else:
                deciding = finding.deciding or next(iter(finding.quantities), None)
                key = replace(finding, quantities=[deciding] if deciding else [], note="").measured
            yield ClaimLine(finding.claim.statement, group, key, study)


class Tally(NamedTuple):
    """The numbers of claims: all; by verdict those of publications that need runs and can be contradicted, those that
    can only be reproduced (``one_sided``), the ``exact`` ones, which compare one number with one bound, and those of a
    lecture, whose material is not published; those of which not all runs ended, and not measured; those with 80 %
    power for their own effect, all exact ones included; and all exact ones."""

    claims: int
    verdicts: Mapping[str, int]
    one_sided_verdicts: Mapping[str, int]
    exact_verdicts: Mapping[str, int]
    lecture_verdicts: Mapping[str, int]
    incomplete: int
    not_measured: int
    powerful: int
    exact: int


def tally(repetitions: Iterable[Repetition]) -> Tally:
    """The numbers of all claims of ``repetitions``."""
    findings = [(one, finding) for one in repetitions for finding in one.findings]
    kinds = Counter((group_of(one, finding), kind_of(finding.claim)) for one, finding in findings)
    by_kind = (
        {str(verdict): kinds[str(verdict), kind] for verdict in Verdict if kinds[str(verdict), kind]}
        for kind in ("", "one-sided", "exact", "lecture")
    )
    powers = [finding.power for _, finding in findings if not finding.claim.exact]
    powerful = sum(power is not None and power.power >= TARGET for power in powers)
    exact = len(findings) - len(powers)
    groups = Counter(group_of(one, finding) for one, finding in findings)
    return Tally(len(findings), *by_kind, groups[NOT_ALL], groups[NONE], powerful + exact, exact)


def kind_of(claim: Claim) -> str:
    """The kind of a claim that is counted apart; empty for one that needs runs and can be contradicted by them."""
    if "lecture" in claim.source:
        return "lecture"
    return "exact" if claim.exact else "one-sided" if claim.irrefutable else ""


def by_verdict(numbers: Mapping[str, int]) -> str:
    """Numbers of claims by verdict, in words."""
    return ", ".join(f"{number} {verdict}" for verdict, number in numbers.items())
