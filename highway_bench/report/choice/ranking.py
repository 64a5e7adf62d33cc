"""The kinds of layers, and the connections of one kind and depth in the order of what counts, at the better start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pandas as pd

from highway_bench.errors import UnknownName
from highway_bench.frames.rows import DEFAULT, rows_of, start_of
from highway_bench.report.choice.columns import BEHIND, BEST, HERE, KNOWN, NOT_SEPARATED, RANKED, REFERENCE
from highway_bench.success.ladder import NOT_RUN


class LayerKind(NamedTuple):
    """A kind of layer: its ``name`` in commands and addresses, the ``label`` that people read, the ``family`` with its
    options and the ``data`` set on which it is measured, other names that it is found under, and the ``protocol`` of
    its rows; empty for that of most."""

    name: str
    label: str
    family: str
    data: str
    also: tuple[str, ...] = ()
    protocol: str = ""


KINDS: Final = (
    LayerKind("mlp", "MLP", "dense", "mnist-5k", ("dense", "linear", "fully-connected", "feed-forward")),
    LayerKind("convolution", "convolution", "conv", "mnist-5k", ("conv", "cnn", "conv2d")),
    LayerKind("conv-pair", "two convolutions", "conv-pair", "mnist-5k", ("two-convolutions",)),
    LayerKind("resnet", "ResNet block", "resnet", "mnist-5k", ("resnet-block", "batch-norm")),
    LayerKind("bilstm", "BiLSTM", "bilstm", "mnist-5k", ("lstm", "rnn", "recurrent")),
    LayerKind("transformer", "transformer, digits", "transformer", "mnist-5k", ("vit", "encoder", "attention")),
    LayerKind("gpt", "language model", "transformer causal", "language", ("text", "language", "decoder", "llm", "lm")),
    LayerKind("code", "transformer, code", "transformer causal", "code", ("python",)),
    LayerKind("mlp-mnist", "MLP, all of MNIST", "dense", "mnist", ()),
)


def kind_of(family: str, data: str) -> LayerKind:
    """The kind of a family with its options on a data set; one of its own name where none is listed."""
    listed = (one for one in KINDS if (one.family, one.data) == (family, data))
    name = "-".join(f"{family} {data}".split())
    return next(listed, LayerKind(name, f"{family} on {data}", family, data))


def kind_named(name: str, kinds: Sequence[LayerKind] = KINDS) -> LayerKind:
    """The one of ``kinds`` that is found under ``name``. Raises ``UnknownName``."""
    wanted = name.strip().lower().replace(" ", "-").replace("_", "-")
    for one in kinds:
        if wanted in (one.name, one.label.lower().replace(", ", "-"), *one.also):
            return one
    raise UnknownName("kind of layer", name, [one.name for one in kinds])


class Criterion(NamedTuple):
    """What counts: the wide table's column by which connections are ranked, the one that is drawn with its bounds, the
    column of places if the table has one, and whether more is better."""

    name: str
    label: str
    rank: str
    drawn: str
    axis: str
    place: str = ""
    more_is_better: bool = False


CRITERIA: Final = {
    one.name: one
    for one in (
        Criterion("held-out", "held-out score", "held_out", "held_out_behind", "held-out loss above the best",
                  "held_out_place"),
        Criterion("time", "time to the same loss", "seconds_saved", "seconds_saved",
                  "× less time, at least", more_is_better=True),
        Criterion("step", "step time", "step_ratio", "step_ratio", "step time ÷ pre-norm's"),
        Criterion("memory", "memory", "bytes", "bytes_ratio", "bytes ÷ pre-norm's"),
        Criterion("loss", "training loss", "loss", "loss_behind", "training loss ÷ the lowest", "loss_place"),
    )
}  # fmt: skip
BY_SCHEDULES: Final = CRITERIA["time"]._replace(
    rank="less_time", drawn="less_time", axis="× less time to the same loss"
)
"""Time where whole schedules of pre-norm are known."""


@dataclass(frozen=True)
class Ranking:
    """The connections of one kind at one depth: ``rows`` of the wide table, those that train in order and then the
    rest, each with ``value``, ``low`` and ``high`` of what is drawn, its ``place``, and whether the connection's starts
    ``differ`` in what became of them."""

    kind: LayerKind
    depth: int
    criterion: Criterion
    rows: tuple[dict[str, Any], ...]

    @property
    def trained(self) -> tuple[dict[str, Any], ...]:
        """The rows of connections that train and have a value."""
        return tuple(row for row in self.rows if row["place"])

    @property
    def take(self) -> str:
        """The connection to take; empty if none trains."""
        return str(self.trained[0]["connection"]) if self.trained else ""

    @property
    def as_good(self) -> tuple[str, ...]:
        """The connections that are not separated from the one to take."""
        return tuple(str(row["connection"]) for row in self.trained if row["place"] == NOT_SEPARATED)


def rows_of_kind(table: pd.DataFrame, kind: LayerKind) -> pd.DataFrame:
    """The rows of a kind, under its protocol, or else under the one of most committed rows, or of most rows here."""
    own = table[table["kind"].eq(kind.family) & table["data"].eq(kind.data)]
    return own[own["protocol"].eq(kind.protocol or main_protocol(own))]


def main_protocol(own: pd.DataFrame) -> str:
    """The protocol of most committed rows with seeds, or else of most rows here; among equals the last one."""
    measured = own[own["seeds"].gt(0)]
    known = measured[measured["source"].eq(KNOWN)]
    counts = (known if len(known) else measured)["protocol"].value_counts(sort=False)
    return str(counts[::-1].idxmax()) if len(counts) else ""


def depths_of(table: pd.DataFrame, kind: LayerKind) -> list[int]:
    """The depths at which a kind was measured."""
    own = rows_of_kind(table, kind)
    return sorted(set(own.loc[own["seeds"].gt(0), "depth"].astype(int)))


def kinds_of(table: pd.DataFrame) -> list[LayerKind]:
    """The kinds that ``table`` has: first those that people know by a name, in their order, then those measured here,
    one for each protocol that is not that of the committed rows."""
    found = dict.fromkeys(kind_of(family, data) for family, data in zip(table["kind"], table["data"], strict=True))
    kinds = [kind for kind in KINDS if kind in found] + [kind for kind in found if kind not in KINDS]
    here = []
    for kind in kinds:
        own = table[table["kind"].eq(kind.family) & table["data"].eq(kind.data) & table["seeds"].gt(0)]
        others = dict.fromkeys(own.loc[own["source"].eq(HERE), "protocol"])
        others.pop(main_protocol(own), None)
        for number, protocol in enumerate(others, start=1):
            at = f" {number}" * (len(others) > 1)
            name, label = f"{kind.name}-here{at.strip()}", f"{kind.label}, this store{at}"
            here.append(kind._replace(name=name, label=label, also=(), protocol=protocol))
    return [kind for kind in [*kinds, *here] if depths_of(table, kind)]


def ranking(table: pd.DataFrame, kind: LayerKind, depth: int, what: str = "held-out") -> Ranking:
    """The ranking of a kind at a measured depth, by the name of a criterion."""
    return _ranked(kind, depth, _criterion(table, kind, what), _records(table, kind, depth))


def rankings_of(table: pd.DataFrame) -> list[Ranking]:
    """The rankings by held-out score of every kind and depth."""
    return [ranking(table, kind, depth) for kind in kinds_of(table) for depth in depths_of(table, kind)]


def every_ranking(table: pd.DataFrame, kind: LayerKind, depth: int) -> dict[str, Ranking]:
    """The rankings of a kind at a measured depth, by the names of the criteria."""
    rows = _records(table, kind, depth)
    return {what: _ranked(kind, depth, _criterion(table, kind, what), rows) for what in CRITERIA}


def _criterion(table: pd.DataFrame, kind: LayerKind, what: str) -> Criterion:
    """The criterion of a name; of time the exact one, at every depth, where whole schedules of the kind are known."""
    exact = what == BY_SCHEDULES.name and rows_of_kind(table, kind)["less_time"].notna().any()
    return BY_SCHEDULES if exact else CRITERIA[what]


def _records(table: pd.DataFrame, kind: LayerKind, depth: int) -> list[dict[str, Any]]:
    """The rows of a kind at a depth; ``None`` for what is missing."""
    own = rows_of_kind(table, kind)
    own = own[own["depth"].eq(depth)]
    of_reference = own.loc[own["connection"].eq(REFERENCE) & own["bytes"].notna(), "bytes"]
    own = own.assign(bytes_ratio=own["bytes"] / (of_reference.iloc[0] if len(of_reference) else math.nan))
    return [{name: None if pd.isna(value) else value for name, value in row.items()} for row in rows_of(own)]


def _ranked(kind: LayerKind, depth: int, criterion: Criterion, records: list[dict[str, Any]]) -> Ranking:
    rows = sorted((_drawn(row, criterion) for row in records), key=lambda row: _order(row, criterion))
    once = {row["connection"]: row for row in reversed(rows)}  # the better start is the first
    kept = [row for row in rows if once[row["connection"]] is row]
    ends = {(row["connection"], row["outcome"]) for row in records if row["seeds"]}
    for row in kept:
        row["differ"] = sum(name == row["connection"] for name, _ in ends) > 1
    _place(kept, criterion)
    return Ranking(kind, depth, criterion, tuple(kept))


def _drawn(row: dict[str, Any], criterion: Criterion) -> dict[str, Any]:
    trains = row["outcome"] in RANKED
    value, low, high = (row.get(f"{criterion.drawn}{bound}") if trains else None for bound in ("", "_low", "_high"))
    if row.get(criterion.place) == BEST:
        value = low = high = 1.0 if criterion.drawn.endswith(("ratio", "loss_behind")) else 0.0
    starts = (DEFAULT, row["start"])  # a label without a start is of the only one
    is_reference = row["connection"] == REFERENCE and row["reference"] and start_of(row["reference"]) in starts
    if criterion.name == "time" and is_reference:
        value = low = high = 1.0
    return row | {"value": value, "low": low, "high": high, "place": ""}


def _order(row: dict[str, Any], criterion: Criterion) -> tuple[Any, ...]:
    """Those that train first, by what counts; then those that do not, by their held-out loss."""
    known = row["outcome"] in RANKED and row["value"] is not None
    rank = row[criterion.rank] if row[criterion.rank] is not None else row["value"]
    size = (-rank if criterion.more_is_better else rank) if known else 0.0
    loss = row["held_out"] if row["held_out"] is not None else math.inf
    return (not known, row["outcome"] not in RANKED, row["outcome"] == NOT_RUN, size, loss, row["connection"])


def _place(rows: list[dict[str, Any]], criterion: Criterion) -> None:
    """Places among those that train: the wide table's, or from whether intervals overlap the best one's."""
    known = [row for row in rows if row["outcome"] in RANKED and row["value"] is not None]
    for number, row in enumerate(known):
        if criterion.place:
            row["place"] = row[criterion.place]
        elif number == 0:
            row["place"] = BEST
        else:
            row["place"] = NOT_SEPARATED if _overlap(row, known[0]) else BEHIND


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    bounds = [(row["low"], row["high"]) for row in (one, other)]
    if any(bound is None for pair in bounds for bound in pair):
        return bool(one["value"] == other["value"])
    (low, high), (least, most) = bounds
    return bool(low <= most and least <= high)
