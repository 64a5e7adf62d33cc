"""The families, connections, starts and data sets in a report, each with its definition."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from highway_bench.report.descriptions import Described
from highway_bench.report.results import Results
from highway_bench.report.rows import DEFAULT, start_of

ARXIV: Final = re.compile(r"arXiv:(\d{4}\.\d{4,5})")

STARTS: Final = {
    DEFAULT: "Weights of He for maps before a ReLU or GELU, of Glorot for others; biases 0, those of gates at "
    "their own value. Every name without another start has this one.",
    "scaled-branch": "The default, with the last map of each branch divided by √L, where L is the number of "
    "connections. A sum over L branches then has a bounded variance.",
    "orthogonal": "Orthogonal maps, with gain √2 before a ReLU or GELU.",
    "uniform": "The default's variances, from uniform distributions.",
    "small": "All weights normal, with a standard deviation of 0.01.",
}
"""The starts of weights, as families define them; the report reads no family."""


@dataclass(frozen=True)
class Term:
    """A name with its equation, its meaning and its source. ``link`` is the source's address, if it is a paper."""

    key: str
    name: str
    equation: str = ""
    meaning: str = ""
    source: str = ""

    @property
    def link(self) -> str:
        paper = ARXIV.search(self.source)
        return f"https://arxiv.org/abs/{paper.group(1)}" if paper else ""


def glossary(results: Results) -> dict[str, list[Term]]:
    """The terms in the rows by kind, in the order of print; a kind without terms is left out."""
    about, rows = results.about, results.rows
    families = [_term(name, about.families) for name in about.family_order(rows["family"].dropna())]
    blocks = [_term(name, about.blocks, about.baseline) for name in about.block_order(rows["block"].dropna())]
    data = [_term(str(name), about.datasets) for name in rows["dataset"].dropna().drop_duplicates()]
    occurring = dict.fromkeys([DEFAULT, *map(start_of, about.block_order(rows["label"]))])
    starts = [Term(start, start, meaning=STARTS.get(start, "")) for start in occurring]
    used = rows[["block", "start"]].dropna().drop_duplicates()
    starts += [_start(block, start, about.blocks) for block, start in used.itertuples(index=False, name=None)]
    kinds = {"Connections": blocks, "Families: what a layer's transform H is": families}
    kinds |= {"Starts: how weights begin": starts, "Data sets": data}
    return {kind: terms for kind, terms in kinds.items() if terms}


def _start(block: str, start: str, described: Described) -> Term:
    about = described.get(block, {}).get("starts", {})
    return Term(f"{block} {start}", f"{block}, {start}", meaning=str(about.get(start, "")))


def _term(name: str, described: Described, baseline: str = "") -> Term:
    spec = described.get(name, {})
    return Term(
        name,
        f"{name} (the unit of costs)" if name == baseline else name,
        str(spec.get("equation") or spec.get("transform") or ""),
        str(spec.get("summary") or ""),
        str(spec.get("source") or ""),
    )
