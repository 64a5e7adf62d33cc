"""The published claims on the pages: a line for each, and their numbers by verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from docs.pages.committed import Repetition
from highway_bench.report.format import counted, listed
from highway_bench.reproduce.claims import Finding, Verdict
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
    """A line of the table of claims: ``group`` is one of ``GROUPS``, ``quantity`` what is measured, with its kind of
    interval, ``key`` its first number, or the reason for none, ``region`` where it lies if the claim holds, and
    ``page`` the address of the findings."""

    claim: str
    source: str
    evidence: str
    group: str
    quantity: str
    key: str
    region: str
    page: str

    @property
    def rank(self) -> int:
        """The position of its group in the table."""
        return GROUPS.index(self.group)


def claim_lines(repetitions: Iterable[Repetition]) -> Iterator[ClaimLine]:
    """One line per claim; exact claims of one reproduction with one verdict are one line."""
    for one in repetitions:
        page = f"literature.md#{one.reproduction.name}"
        present = {group_of(one, finding) for finding in one.findings}
        if len(present) == 1 and len(one.findings) > 1 and all(finding.claim.exact for finding in one.findings):
            (group,) = present
            claims = [finding.claim for finding in one.findings]
            about = (one.reproduction.title, one.reproduction.source, _each(claim.evidence for claim in claims), group)
            every = f"all of {counted(len(claims), 'claim')}"
            regions = _each(claim.region.text(claim.unit) for claim in claims)
            yield ClaimLine(*about, _each(claim.quantity_text for claim in claims), every, regions, page)
            continue
        for finding in one.findings:
            claim = finding.claim
            group = group_of(one, finding)
            if group == NONE:
                key = finding.power_text
            elif group == NOT_ALL:
                key = one.conclusion.incomplete
            else:
                deciding = finding.deciding or next(iter(finding.quantities), None)
                key = replace(finding, quantities=[deciding] if deciding else [], note="").measured
            about = (claim.statement, claim.source, str(claim.evidence), group)
            yield ClaimLine(*about, claim.quantity_text, key, claim.region.text(claim.unit), page)


def _each(texts: Iterable[str]) -> str:
    """Different texts in a list, each once."""
    return listed(list(dict.fromkeys(map(str, texts))))


class Tally(NamedTuple):
    """The numbers of claims: all; by verdict those that have an interval and the ``exact`` ones, which have none; those
    of which not all runs ended, and not measured; those with 80 % power for their own effect, all exact ones
    included; all exact ones; and those whose source is not published."""

    claims: int
    verdicts: Mapping[str, int]
    exact_verdicts: Mapping[str, int]
    incomplete: int
    not_measured: int
    powerful: int
    exact: int
    unpublished: int


def tally(repetitions: Iterable[Repetition]) -> Tally:
    """The numbers of all claims of ``repetitions``."""
    findings = [(one, finding) for one in repetitions for finding in one.findings]
    kinds = Counter((group_of(one, finding), finding.claim.exact) for one, finding in findings)
    verdicts, exact_verdicts = (
        {str(verdict): kinds[str(verdict), exact] for verdict in Verdict if kinds[str(verdict), exact]}
        for exact in (False, True)
    )
    powers = [finding.power for _, finding in findings if not finding.claim.exact]
    powerful = sum(power is not None and power.power >= TARGET for power in powers)
    exact = len(findings) - len(powers)
    unended, unmeasured = (kinds[group, False] + kinds[group, True] for group in (NOT_ALL, NONE))
    unpublished = sum("lecture" in finding.claim.source for _, finding in findings)
    return Tally(len(findings), verdicts, exact_verdicts, unended, unmeasured, powerful + exact, exact, unpublished)


def by_verdict(numbers: Mapping[str, int]) -> str:
    """Numbers of claims by verdict, in words."""
    return ", ".join(f"{number} {verdict}" for verdict, number in numbers.items())
