"""Tables of the reproduction ``gates``: its trained networks, and their layers in bands of five."""

from __future__ import annotations

import math

import pandas as pd

from highway_bench.families import make_family
from highway_bench.frames.gates import over_seeds
from highway_bench.frames.rows import recipe_of
from highway_bench.report import columns as column
from highway_bench.report.format import listed
from highway_bench.tasks import tasks

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


def networks_table(trainings: pd.DataFrame, table: pd.DataFrame, trials: pd.DataFrame) -> column.Shown:
    """One row per kind of network: its training, and its gates, averaged over layers.

    ``trainings`` has a row per network, ``table`` one per trained network and layer; its column ``idle`` says whether
    the layer contributes nothing. ``trials`` are those of the searches.
    """
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


def bands_table(table: pd.DataFrame) -> column.Shown:
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
