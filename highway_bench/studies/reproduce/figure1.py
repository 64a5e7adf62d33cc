"""The highway paper's Figure 1: best of a random search for plain and highway networks of 10, 20, 50 and 100 layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.report.format import listed, three
from highway_bench.studies.reproduce.arms import left_chance, trained
from highway_bench.studies.reproduce.base import Evaluated, NotAttempted, Reproduction, register_reproduction
from highway_bench.studies.reproduce.claims import Claim, Evidence, Observation, RuleVersion
from highway_bench.studies.reproduce.quantities import BEST_OF, Quantity, Region, Statistic, best_ratio, order
from highway_bench.studies.reproduce.request import Request
from highway_bench.studies.reproduce.searches import ARMS, ArmKey, Searches, picture_of, searched, table_of
from highway_bench.success.judging import THRESHOLD

DEPTHS = (10, 20, 50, 100)  # as the papers count: the plain layer before the stack is one of them
NOMINAL = 71  # units of plain; highway has 50: 5,112 and 5,100 parameters per layer
BATCH = 100

LONG = "arXiv:1507.06228, Figure 1"

# The statistic is the expected best of 20 trials, estimated from 60. The rows of version 1's search (seed 0) were seen.
# Trial i has the same rate, momentum, decay and activation in both arms. Since 2026-11-29 the interval is a jackknife:
# the bootstrap covered 84 to 92 % for 95, and the new one is wider, so it can only withhold a verdict.
SEARCH = 1  # the search's seed
CLAIMS = 11  # that are judged together
FASTER_AT = (20, 50, 100)  # layers
ABOUT = 10.0  # losses within a factor of ten count as about equal: the paper speaks of orders of magnitude
TWICE = 2.0  # plain counts as about as good up to twice highway's loss
HUNDRED = 100.0

# Effects that the papers' text implies, and rough readings of their plot: plain of 10 layers ends at a tenth of
# highway's loss, near 1e-4; plain of 100 layers near 1e-1, highway near 1e-5 at every depth
PLAIN_AT_10, PLAIN_OVER_HIGHWAY, PLAIN_OVER_10 = 0.1, 1e4, 1e3
SCATTER = 0.5  # decades between the trials of a search
SCATTER_OF_STEPS = 0.15  # decades between the steps of runs


def _compared(
    statement: str,
    pairs: Sequence[tuple[ArmKey, ArmKey]],
    region: Region,
    *,
    trials: int,
    short: str,
    in_digits: bool = False,
    source: str = LONG,
    **rest: Any,
) -> Claim:
    """A claim about the ratio of the expected best losses of two arms, or about several such ratios.

    If the arms have the same depth, one of them must be trained; else the shallower one, which is the reference.
    ``short`` is the reason why nothing here contradicts a number, which a claim ``in_digits`` states."""
    criterion = left_chance("mnist-5k")

    def observe(data: Searches, confidence: float) -> Observation:
        if missing := [arm for pair in pairs for arm in pair if arm not in data]:
            return Observation(untestable=f"not run: {listed([_named(arm) for arm in dict.fromkeys(missing)])}")
        known = [any(criterion.by(data[arm]["expected"]) for arm in _references(pair)) for pair in pairs]
        return Observation(
            decisive=[
                best_ratio(_over((one, other)), data[one]["losses"], data[other]["losses"], confidence)
                for one, other in pairs
            ],
            untestable="" if all(known) else f"the reference is untrained: its expected best is not {criterion.text}",
        )

    return Claim(
        statement=statement,
        source=source,
        quantity=f"expected best loss of {BEST_OF} trials, drawn by the search's seed {SEARCH}, "
        + " and ".join(map(_over, pairs)),
        unit="×",
        statistic=Statistic.BEST,
        region=region,
        guard=f"if the expected best of the reference (the shallower net; at equal depth, the better one) is not "
        f"{criterion.text}",
        irrefutable=short if in_digits else "",
        observe=observe,
        n=trials,
        least=2 * BEST_OF,
        scatter=SCATTER,
        comparisons=CLAIMS,
        **rest,
    )


def _references(pair: tuple[ArmKey, ArmKey]) -> Sequence[ArmKey]:
    """The arms of which one must be trained: both at equal depth, else the shallower one."""
    return pair if _same_depth(pair) else [min(pair, key=lambda arm: arm[1])]


def _same_depth(pair: tuple[ArmKey, ArmKey]) -> bool:
    return pair[0][1] == pair[1][1]


def _named(arm: ArmKey) -> str:
    return f"{arm[0]} of {arm[1]} layers"


def _over(pair: tuple[ArmKey, ArmKey]) -> str:
    """The ratio in words: plain / highway, or highway, 100 / 10 layers, or highway, 100 layers / plain, 10 layers."""
    (block, depth), (other, shallower) = pair
    if block != other and depth != shallower:
        return f"{block}, {depth} layers / {other}, {shallower} layers"
    return f"{block} / {other} at {depth} layers" if _same_depth(pair) else f"{block}, {depth} / {shallower} layers"


READING: Mapping[str, Any] = {
    "source": "a reading of arXiv:1505.00387, Figure 1",
    "evidence": Evidence.SECONDARY,
}
COMPARISONS = (
    partial(
        _compared,
        "10 layers: plain is as good as highway, or better",
        [(("plain", 10), ("highway", 10))],
        Region(most=TWICE),
        effect=PLAIN_AT_10,
        **READING,
    ),
    *(
        partial(
            _compared,
            f"{depth} layers: highway ends at a lower loss than plain",
            [(("plain", depth), ("highway", depth))],
            Region(least=1.0),
            effect=HUNDRED if depth == 100 else math.nan,
            **READING,
        )
        for depth in (20, 50, 100)
    ),
    partial(
        _compared,
        "a 100-layer highway net is more than two orders of magnitude better than a plain one",
        [(("plain", 100), ("highway", 100))],
        Region(least=HUNDRED, closed=True),
        in_digits=True,
        effect=PLAIN_OVER_HIGHWAY,
    ),
    partial(
        _compared,
        "plain nets degrade strongly as depth grows",
        [(("plain", 100), ("plain", 10))],
        Region(least=ABOUT),
        refuted=(Region(most=1.0),),
        effect=PLAIN_OVER_10,
    ),
    partial(
        _compared,
        f"highway nets of 50 and 100 layers do about as well as those of 10 (within a factor of {ABOUT:g})",
        [(("highway", depth), ("highway", 10)) for depth in (50, 100)],
        Region(most=ABOUT),
        effect=1.0,
    ),
    partial(
        _compared,
        "highway nets get better with depth: 100 layers reach a lower loss than 10",
        [(("highway", 10), ("highway", 100))],
        Region(least=1.0),
        effect=10.0,
        **READING,
    ),
    partial(
        _compared,
        f"a 100-layer highway net is on a par with the 10-layer plain net (within a factor of {ABOUT:g})",
        [(("highway", 100), ("plain", 10))],
        Region(1 / ABOUT, ABOUT),
        refuted=(Region(most=1 / ABOUT), Region(least=ABOUT)),
        effect=1.0,
        **READING,
    ),
)


class SearchScale(NamedTuple):
    """The size of a run: data set, steps, trials per arm and depth, networks per population."""

    dataset: str
    steps: int
    trials: int
    together: int


SCALES = {
    "desk": SearchScale("mnist-5k", 500, 60, 20),
    "paper": SearchScale("mnist", 400 * 600, 100, 100),  # 400 epochs of 600 batches
}


@register_reproduction(
    "figure1",
    title="Best of a random search, 10 to 100 layers, plain against highway",
    source="arXiv:1505.00387 and arXiv:1507.06228, Figure 1",
)
class Figure1(Reproduction):
    """Dense networks on 5,000 digits of MNIST, trained by SGD with momentum and a rate that falls exponentially.

    Rate, momentum, decay and activation are drawn at random, and for highway the gate bias too; both arms have the same
    number of trials. The paper names these dimensions but not their ranges; the priors are
    ``highway_bench.tuning.FIGURE_1``. Its batch size (100) and its number of runs per curve (40 or 100) are not certain
    either. The plain first layer is always rectified here, whatever the activation of the other layers.
    """

    takes = frozenset({"trials", "steps", "seeds", "depth"})
    # Version 1 compared the lowest of 20 trials. Version 3 has one claim more than version 2, of which no rows were
    # seen
    version = RuleVersion(3, "2026-11-24", seen=5)
    default_seeds = 5
    scales = tuple(SCALES)
    not_attempted = (
        NotAttempted(
            "the best loss at each depth, in numbers",
            LONG,
            "the text has none, and values read from a plot are not exact",
        ),
    )

    def cells(self, request: Request) -> list[Cell]:
        if 1 in request.depth:
            raise BadInput("the depth counts the plain first layer, so it is 2 at least")
        scale = SCALES[self.scale_of(request)]
        recipe: dict[str, Any] = {
            "optimiser": "sgd",
            "steps": request.steps or scale.steps,
            "threshold": THRESHOLD,
            "together": scale.together,
            "search": {"space": "figure-1", "trials": request.trials or scale.trials, "seed": SEARCH},
        }
        return [
            trained(
                block,
                "dense",
                depth=depth - 1,
                nominal_width=NOMINAL,
                batch_size=BATCH,
                dataset=scale.dataset,
                recipe=recipe,
                device=request.device,
                seed=seed,
            )
            for depth in request.depth or DEPTHS
            for block in ARMS
            for seed in self.seeds(request)
        ]

    def claims(self, request: Request) -> Sequence[Claim]:
        scale = SCALES[self.scale_of(request)]
        papers_budget = request.scale == "paper" and request.steps is None and request.trials is None
        short = "" if papers_budget else "the budget is smaller than the paper's"
        trials = {"trials": request.trials or scale.trials, "version": self.version}
        return [
            *(one(short=short, **trials) for one in COMPARISONS),
            _lowest(short, self.version),
            _faster(**self.design(request)),
        ]

    def evaluated(self, rows: pd.DataFrame, request: Request) -> Evaluated:
        searches = searched(rows)
        return searches, [table_of(searches)], [picture_of(searches)] if searches else []


def _lowest(short: str, version: RuleVersion) -> Claim:
    def observe(data: Searches, _: float) -> Observation:
        best = {depth: data["plain", depth]["best"] for depth in (10, 20) if ("plain", depth) in data}
        return Observation(
            decisive=[Quantity.exact(f"{depth} layers", loss, "nat") for depth, loss in best.items()],
            untestable="" if len(best) == 2 else "not run at both depths",
        )

    return Claim(
        statement="plain nets of 10 and 20 layers reach a mean loss below 1e-4",
        source=LONG,
        quantity="loss of the best trial at either depth",
        unit="nat",
        statistic=Statistic.EXACT,
        region=Region(most=1e-4),
        irrefutable=short,
        observe=observe,
        version=version,
    )


def _faster(**design: Any) -> Claim:
    """Which arm's winner reaches the threshold in fewer steps; a run that never reaches it counts as the slowest."""

    def observe(data: Searches, _: float) -> Observation:
        pairs = {depth: [data.get((arm, depth), {}).get("steps", []) for arm in ARMS] for depth in FASTER_AT}
        known = {depth: pair for depth, pair in pairs.items() if all(pair)}
        medians = {depth: list(map(median, pair)) for depth, pair in known.items()}
        missed = [f"{depth} layers" for depth, pair in medians.items() if math.isinf(min(pair))]
        parts = [
            f"{depth} layers: plain {three(plain)}, highway {three(highway)}"
            for depth, (plain, highway) in medians.items()
        ]
        reason = f"neither arm reaches it at {listed(missed)}" if missed else ""
        return Observation(
            decisive=[order(f"{depth} layers", *pair) for depth, pair in known.items()],
            untestable="not run at every depth" if len(known) < len(FASTER_AT) else reason,
            note=f"median steps: {'; '.join(parts)}" if parts else "",
        )

    return Claim(
        statement="highway nets converge faster than plain ones",
        source=LONG,
        quantity="plain's over highway's steps to a tenth of chance's loss, the winners on fresh seeds, at 20, "
        "50 and 100 layers (∞: never)",
        unit="×",
        statistic=Statistic.ORDER,
        region=Region(least=1.0),
        guard="if neither arm reaches it at half of its seeds",
        observe=observe,
        scatter=SCATTER_OF_STEPS,
        **design,
    )
