"""Inside a trained 50-layer highway network: its gates by layer, and the effect of cutting out one layer (a lesion)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.frames.gates import layers, networks, over_seeds
from highway_bench.frames.rows import recipe_of
from highway_bench.frames.trainability import trials
from highway_bench.plan.grid import TRAINED
from highway_bench.report import columns as column
from highway_bench.report.format import listed
from highway_bench.studies.reproduce.arms import trained
from highway_bench.studies.reproduce.base import Evaluated, NotAttempted, Reproduction, register_reproduction
from highway_bench.studies.reproduce.claims import Claim, Evidence, Observation, RuleVersion
from highway_bench.studies.reproduce.quantities import Region, Share, Statistic, mean
from highway_bench.studies.reproduce.request import Request
from highway_bench.success.judging import THRESHOLD
from highway_bench.tasks import tasks
from highway_bench.tuning import FIGURE_1, SPACES, Space

FIXED_BIAS = "figure-1-fixed-bias"
"""The space of Figure 1 without a prior of the gate bias: the cell's own bias stays. All else has the same draws. It is
no part of ``tuning``: every training runs through that module, and a change to it makes all stored losses invalid."""
cast(dict[str, Space], SPACES)[FIXED_BIAS] = FIGURE_1._replace(gates={})

DEPTH = 49  # highway layers; the paper's 50 include the plain layer before them
BATCH = TRAINED.batches["vector"]
PUBLISHED, CARRYING = "highway gate_bias=-2", "highway"  # gate bias of the paper, and −ln L
STARTS = {PUBLISHED: "at bias −2", CARRYING: "at bias −ln L"}
FIRST = 2  # number of the first highway layer: the paper counts the plain layer before it

# Layers are counted as in the paper: layer 1 is the plain one
EARLY = 15  # "the first ~15 layers" are 2 to 15 here
SILENT = slice(15, 45)  # "layers 15–45"
NOTHING = 0.1  # points of the training error: a lesioned layer that changes it by less contributes nothing

LONG, LESION, RESNET = "arXiv:1507.06228, §4", "arXiv:1507.06228, §4.2", "arXiv:1512.03385, §2"


class TrainingScale(NamedTuple):
    """The size of a run: data set, its number of training items, epochs, and trials of each search."""

    dataset: str
    items: int
    epochs: float
    trials: int


SCALES = {"desk": TrainingScale("mnist-5k", 4_000, 37.5, 40), "paper": TrainingScale("mnist", 60_000, 50, 100)}


@register_reproduction(
    "gates",
    title="Gates by layer, and one layer cut out at a time, at 50 layers",
    source="arXiv:1507.06228, §4; arXiv:1512.03385, §2",
)
class Gates(Reproduction):
    """1 plain and 49 highway layers of 50 units on 5,000 digits of MNIST, with gate bias −2 as published and with
    −ln L; and pre-norm.

    SGD with momentum: the best of a random search with the priors of ``figure1``, in which the gate bias is fixed (the
    paper shows the best networks of its search). All networks have the same trials, ReLU and tanh among them. The rules
    apply to the network with the published bias, of which at least half of the seeds must train. The network with
    bias −ln L is reported but decides nothing. Only seeds that trained count.
    """

    default_seeds = 10
    # In version 1 a grid of rates with ReLU trained no net at bias −2. In version 2 five seeds left three statements
    # undecided
    version = RuleVersion(3, "2026-11-28", seen=10)
    takes = frozenset({"epochs", "steps", "seeds", "trials"})
    scales = tuple(SCALES)
    not_attempted = (
        NotAttempted(
            "the digits 0 and 7 use different gates in the first 15 layers",
            LONG,
            "the rows have the spread over all ten classes, which a claim here is about, and not that of two",
        ),
        *(
            NotAttempted(published, LONG)
            for published in (
                "CIFAR-100 (bias −4): biases rise with depth, against the slope of mean activity",
                "CIFAR-100: the stream changes most in the first ~40 layers",
                "CIFAR-100: which gates are open depends on the class at all depths",
                "CIFAR-100: cutting out any of the first ~40 layers hurts",
            )
        ),
    )

    def cells(self, request: Request) -> list[Cell]:
        if request.steps and request.epochs:
            raise BadInput("give epochs or steps, not both")
        scale = SCALES[self.scale_of(request)]
        recipe: dict[str, Any] = {
            "optimiser": "sgd",
            "steps": request.steps or round((request.epochs or scale.epochs) * scale.items / BATCH),
            "threshold": THRESHOLD,
            "together": 20,  # trials that train as one population
            "search": {"space": FIXED_BIAS, "trials": request.trials or scale.trials, "seed": 0},
        }
        cells = [
            trained(
                block,
                "dense",
                task="gates",
                depth=DEPTH,
                nominal_width=TRAINED.widths["vector"],
                batch_size=BATCH,
                dataset=scale.dataset,
                recipe=recipe,
                device=request.device,
                seed=seed,
            )
            for seed in self.seeds(request)
            for block in ("highway", "pre-norm")
        ]
        return [*(cell.but(block_options={"gate_bias": -2}) for cell in cells if cell.block == "highway"), *cells]

    def claims(self, request: Request) -> Sequence[Claim]:
        return [_trains(**self.design(request)), *(one(**self.design(request)) for one in STATEMENTS)]

    def evaluated(self, rows: pd.DataFrame, request: Request) -> Evaluated:
        own = self.fresh(rows)
        trainings, table = networks(own), layers(own)
        table = table.assign(layer=table["layer"] + FIRST - 1)
        table = table[table["success"] == 1]
        trained = {label: int(trainings.loc[trainings["label"] == label, "success"].eq(1).sum()) for label in STARTS}
        idle = table.assign(idle=_lesions(table).abs() < NOTHING)
        tables = [networks_table(trainings, idle, trials(rows)), *([bands_table(table)] if len(table) else [])]
        return (table, trained), tables, []


Networks = tuple[pd.DataFrame, Mapping[str, int]]
"""A row per trained network and layer, and the number of seeds that train by label."""


def _trains(n: int, **rest: Any) -> Claim:
    """Whether the network with the published bias, which all other claims are about, trains."""

    def observe(data: Networks, _: float) -> Observation:
        shares = [Share.of_runs(STARTS[label], count, n) for label, count in data[1].items()]
        return Observation(decisive=shares[:1], reported=shares[1:])

    return Claim(
        statement="the 50-layer net at bias −2 trains",
        source=LONG,
        quantity="share of seeds that train",
        unit="%",
        statistic=Statistic.SHARE,
        region=Region(least=50, closed=True),
        irrefutable="its training is not published in full",
        observe=observe,
        effect=90,
        n=n,
        **rest,
    )


def _statement(
    statement: str,
    source: str,
    quantity: str,
    value: Callable[[pd.DataFrame], float],
    region: Region,
    scatter: float,
    unit: str = "",
    *,
    n: int,
    **rest: Any,
) -> Claim:
    """A statement as a ``value`` of one trained network, which lies in ``region``.

    ``scatter`` is the standard deviation between five seeds of the network with bias −2."""

    def observe(data: Networks, confidence: float) -> Observation:
        table, trained = data
        values = {
            label: mean(name, values_of(table[table["label"] == label]), confidence, unit)
            for label, name in STARTS.items()
            if 2 * trained[label] >= n
        }
        return Observation(
            decisive=[one for label, one in values.items() if label == PUBLISHED],
            reported=[one for label, one in values.items() if label != PUBLISHED],
            untestable="" if PUBLISHED in values else f"too few networks train {STARTS[PUBLISHED]}",
        )

    def values_of(table: pd.DataFrame) -> list[float]:
        return [value(network.set_index("layer").sort_index()) for _, network in table.groupby("seed")]

    return Claim(
        statement=statement,
        source=source,
        quantity=quantity,
        unit=unit,
        statistic=Statistic.MEAN,
        region=region,
        scatter=scatter,
        guard=f"if fewer than half of the seeds train {STARTS[PUBLISHED]}",
        observe=observe,
        n=n,
        **rest,
    )


def _lesions(network: pd.DataFrame) -> pd.Series:
    """The change of the training error by the layer that was cut out, in points."""
    return 100 * network["lesion_error_change"]


def _silent(network: pd.DataFrame) -> pd.Series:
    return _lesions(network.loc[SILENT])


STATEMENTS = (
    partial(
        _statement,
        "gate biases fall further in training",
        LONG,
        "mean bias after training minus at the start",
        lambda one: (one["gate_bias_end"] - one["gate_bias_start"]).mean(),
        Region(most=0),
        0.003,
        effect=-0.01,
    ),
    partial(
        _statement,
        "activity is sparse for one example, not on average",
        LONG,
        "Hoyer's sparsity of all gates for one example minus that of their means, on a scale of 0 to 100",
        lambda one: 100 * (one["sparsity_one"] - one["sparsity_average"]).iloc[0],
        Region(least=10),
        2.3,
        "points",
    ),
    partial(
        _statement,
        "most of the stream's change is in the first ~15 layers",
        LONG,
        f"share of Σ ‖Δx‖/‖x‖ in layers 2–{EARLY}",
        lambda one: 100 * one.loc[:EARLY, "stream_change"].sum() / one["stream_change"].sum(),
        Region(least=50),
        3.4,
        "%",
        evidence=Evidence.OURS,  # the paper has a picture of it, and no share
    ),
    partial(
        _statement,
        "which gates are open depends on the class in the first 15 layers",
        LONG,
        f"spread of class means of T in layers 2–{EARLY} over that of the later layers",
        lambda one: one.loc[:EARLY, "gate_class_spread"].mean() / one.loc[EARLY + 1 :, "gate_class_spread"].mean(),
        Region(least=1),
        0.051,
        "×",
    ),
    partial(
        _statement,
        "cutting out an early layer raises the error",
        LESION,
        f"mean error change in layers 2–{EARLY - 1} minus that in layers 15–45",
        lambda one: _lesions(one[one.index < SILENT.start]).mean() - _silent(one).mean(),
        Region(least=NOTHING),
        0.12,
        "points",
    ),
    partial(
        _statement,
        "cutting out any of layers 15–45 has almost no effect",
        LESION,
        "the largest of their error changes",
        lambda one: _silent(one).abs().max(),
        Region(most=NOTHING),
        0.47,
        "points",
        effect=0.0,
    ),
    partial(
        _statement,
        "about 60 % of the layers contribute nothing",
        LESION,
        f"share of layers whose lesion changes the error by less than {NOTHING:g} points",
        lambda one: 100 * (_lesions(one).abs() < NOTHING).mean(),
        Region(least=45, most=75),
        7.9,
        "%",
    ),
    partial(
        _statement,
        "gated shortcuts can close, identity shortcuts (C = 1) never do",
        RESNET,
        "share of shortcuts with C = 1 − T < 0.05, over units and examples",
        lambda one: 100 * one["gates_full"].mean(),
        Region(least=0.1),
        0.95,
        "%",
        irrefutable="it says that something is possible",
    ),
)


WHOLE = ("intact_loss", "intact_error")  # metrics of the whole network
BY_LAYER = (
    "gate_bias_start",
    "gate_bias_end",
    "gate_activity",
    "gates_shut",
    "gates_open_one",
    "gates_open_some",
    "gates_full",
    "stream_change",
)
SPARSITIES = ("sparsity_one", "sparsity_average")
BANDS = ("gate_bias_end", "gate_activity", "gates_shut", "gates_open_one", "gate_class_spread", "stream_change")
LESIONS = ("lesion_loss_change", "lesion_error_change")


def _columns(*names: str) -> list[column.Column]:
    """Columns of metrics, as the task declares them."""
    metrics = {metric.name: metric for metric in tasks.get("gates").metrics}
    return [
        column.percent(name, metrics[name].label, metrics[name].hint)
        if metrics[name].percent
        else column.number(name, metrics[name].label, metrics[name].unit, metrics[name].hint)
        for name in names
    ]


def searched(trials: pd.DataFrame, trainings: pd.DataFrame) -> pd.DataFrame:
    """By label, the ``activation`` of the trial whose rate the networks have, and how many ``trials`` of each train."""
    default = make_family("dense").activation  # type: ignore[attr-defined]
    trials = trials.assign(g=[recipe_of(options).get("activation", default) for options in trials["family_options"]])
    rates = dict(trainings.groupby("label")["rate"].first())
    records = {}
    for label, own in trials.groupby("block"):
        chosen = own["g"][own["rate"] == rates.get(label, math.nan)]
        counts = [f"{g} {int(part['success'].eq(1).sum())} of {len(part)}" for g, part in own.groupby("g")]
        records[label] = {"activation": "".join(chosen[:1]), "trials": ", ".join(counts)}
    return pd.DataFrame.from_dict(records, orient="index", columns=["activation", "trials"])


def networks_table(trainings: pd.DataFrame, table: pd.DataFrame, trials: pd.DataFrame) -> column.TextTable:
    """One row per kind of network: its training, and its gates, averaged over layers. The column ``idle`` of ``table``,
    which has a row per trained network and layer, says whether the layer contributes nothing."""
    mean = table.groupby("label")[[*BY_LAYER]].mean()
    idle = table.groupby("label")["idle"].mean()
    whole = trainings[trainings["success"] == 1].groupby("label")[[*WHOLE, *SPARSITIES]].mean()
    trained = trainings.groupby("label", sort=False).agg(
        trained=("success", lambda success: f"{success.sum():g} of {success.count()}"),
        rates=("rate", lambda rates: listed([f"{rate:g}" for rate in sorted(rates.dropna().unique())])),
    )
    records = trained.join(searched(trials, trainings)).join(whole).join(mean).join(idle).reset_index()
    columns = [
        column.words("label", "network"),
        column.words("trained", "seeds that train"),
        column.words("rates", "rate"),
        column.words("activation", "activation", "that of the best trial"),
        column.words("trials", "trials that train"),
        *_columns(*WHOLE, *BY_LAYER, *SPARSITIES),
        column.percent("idle", "layers that contribute nothing"),
    ]
    note = (
        "Means over the seeds that train, and over layers for metrics by layer. Identity shortcuts have no gate: "
        "C = 1 by construction, so none closes. The contribution of their layers is ‖F‖ / ‖x‖."
    )
    return column.shown("gates-networks", "The trained networks", records, columns, note=note)


def bands_table(table: pd.DataFrame) -> column.TextTable:
    """One row per network and five layers: means over these layers and the seeds."""
    first = (table["layer"] - 1) // 5 * 5 + 1
    named = table.assign(layers=[f"{max(start, 2)}–{start + 4}" for start in first], order=first)
    metrics = (*BANDS, *LESIONS)
    per_seed = named.groupby(["label", "order", "layers", "seed"], as_index=False)[list(metrics)].mean()
    mean = over_seeds(per_seed, ["label", "layers"], metrics)
    columns = [
        column.words("label", "network"),
        column.words("layers", "layers"),
        *_columns(*BANDS),
        column.spread(
            "lesion_loss_change", "lesion: Δ loss", "lesion_loss_change_low", "lesion_loss_change_high", "nat"
        ),
        column.percent("lesion_error_change", "lesion: Δ error"),
    ]
    return column.shown(
        "gates-layers",
        "By layer; layer 1 is the plain one",
        mean,
        columns,
        note="Means over five layers and the seeds that train, with 95 % t intervals over seeds.",
    )
