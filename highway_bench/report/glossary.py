"""The families, connections, starts and data sets in a report, each with its definition."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from highway_bench.report.descriptions import Described
from highway_bench.report.format import listed
from highway_bench.report.results import Results
from highway_bench.report.rows import DEFAULT, groups, start_of

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
SCALED_BRANCH: Final = "last map ÷ √L"
"""How a block describes its start that divides the last map of H; the report reads no block."""
FIXED_FACTOR: Final = "a constant factor on the branch"
UNTRAINED: Final = ("throughput", "memory", "cost")
"""Tasks whose networks have one start, which does not change what they measure."""


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
    used = rows[["block", "start", "family"]].dropna()
    unnamed = rows["start"].isna() & ~rows["task"].isin(UNTRAINED)
    occurring = dict.fromkeys([DEFAULT, *map(start_of, about.block_order(rows["label"]))])
    named = set(used["start"]) | ({DEFAULT} if len(used) and not unnamed.any() else set())
    starts = [Term(start, start, meaning=STARTS.get(start, "")) for start in occurring if start not in named]
    for key, part in groups(used, ["block", "start"]):
        block, start = key["block"], key["start"]
        meaning = start_text(block, start, about.blocks, part["family"])
        starts.append(Term(f"{block} {start}", f"{block}, {start}", meaning=meaning))
    kinds = {"Connections": blocks, "Families: what a layer's transform H is": families}
    kinds |= {"Starts: how weights begin": starts, "Data sets": data}
    return {kind: terms for kind, terms in kinds.items() if terms}


def start_text(block: str, start: str, described: Described, families: Iterable[str]) -> str:
    """How ``block`` begins at ``start``, and in which of ``families`` that is a constant factor; empty if no run
    describes it."""
    text = str(described.get(block, {}).get("starts", {}).get(start, ""))
    fixed = [family for family in dict.fromkeys(families) if is_fixed_factor(family, block, text)]
    return f"{text}; in {listed(fixed)}: {FIXED_FACTOR}" if fixed else text


def is_fixed_factor(family: str, block: str, text: str) -> bool:
    """Whether a start with this description multiplies the branch by a constant instead of scaling its last map: in a
    family whose maps the package does not initialise, ``bilstm`` or a factory ``module:factory``."""
    return (family == "bilstm" or ":" in family) and (text == SCALED_BRANCH or block == "deepnorm")


def _term(name: str, described: Described, baseline: str = "") -> Term:
    spec = described.get(name, {})
    return Term(
        name,
        f"{name} (the unit of costs)" if name == baseline else name,
        str(spec.get("equation") or spec.get("transform") or ""),
        str(spec.get("summary") or ""),
        str(spec.get("source") or ""),
    )
