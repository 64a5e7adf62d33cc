"""Step time of self-attention and of a bidirectional LSTM by sequence length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import torch
from scipy import stats

from highway_bench.cell import Cell
from highway_bench.families import make_family
from highway_bench.frames.rows import of_task, rows_of, samples_of
from highway_bench.measure.statistics import CONFIDENCE, median_interval
from highway_bench.report import columns as column
from highway_bench.report.format import listed, quantity
from highway_bench.results.schema import Status
from highway_bench.studies.reproduce.base import Evaluated, Reproduction, register_reproduction
from highway_bench.studies.reproduce.claims import Claim, Evidence, Observation, RuleVersion
from highway_bench.studies.reproduce.quantities import Quantity, Region, Statistic, apart
from highway_bench.studies.reproduce.request import Request

FAMILIES = {"attention": "attention", "bilstm": "BiLSTM"}
LENGTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
WIDTH, DEPTH, BATCH = 64, 2, 16
RECIPE = {"seconds": 0.3, "samples": 15}
ENOUGH = 5  # with fewer samples, the median of a cell is unreliable

# An exponent is the slope of log time against log length with its 95 % t interval.
LINEAR = (0.8, 1.2)  # exponents that count as linear
SHORT = tuple(length for length in LENGTHS if length < WIDTH)
FROM = WIDTH  # below this length, a step's constant overhead hides the growth of its work
QUADRATIC_FROM = 2 * WIDTH  # above this length, most of attention's work is the n² part
FLAT, FLAT_TO = 0.25, 128  # on a GPU: up to length 128, a smaller exponent means a time that is independent of n

# Upper bounds of the scatter in runs of d1b50c2, as that of one of ``n`` values whose mean has the same interval: of
# BiLSTM's exponent, of the two exponents above QUADRATIC_FROM, and of a step (s)
SCATTER, SCATTER_ABOVE, SCATTER_OF_STEPS = 0.1, 0.2, 2e-4
SAVED = -1e-3  # s: a quarter of BiLSTM's step of 4 ms at n = 16, as attention has a quarter less work there

TABLE = "arXiv:1706.03762, Table 1"
TEXT = "arXiv:1706.03762, §4"


@register_reproduction(
    "parallel", title="Step time of attention and BiLSTM by sequence length", source="arXiv:1706.03762, §4 and Table 1"
)
class Parallel(Reproduction):
    """Two layers of width 64 without connections, batches of 16, forward and backward, sequence lengths 16 to 512.

    By the paper's table, a self-attention layer has O(n²·d) work in O(1) sequential operations, a recurrent layer
    O(n·d²) in O(n). These are counts, which no clock can confirm or contradict. This project tests its own reading:
    that time on this device follows the counts. On a CPU, which has few lanes, time follows the work; parallelism is
    visible on a GPU only.

    Each family and length is sampled on its own, not interleaved with the others: times are from one machine and one
    run, and their ratios have no paired interval.
    """

    # Version 1 left out n = 48, and only all lengths together could contradict. Its rows had attention the slower one
    # from n ≈ 43; all steps were timed again for version 2, which has no seeds
    version = RuleVersion(2, "2026-11-25")

    def cells(self, request: Request) -> list[Cell]:
        return [
            Cell(
                task="throughput",
                block="plain",
                family=family,
                depth=DEPTH,
                width=WIDTH,
                nominal_width=WIDTH,
                match="width",
                batch_size=BATCH,
                seq_len=length,
                phase="forward-backward",
                device=request.device,
                recipe=RECIPE,
                threads=torch.get_num_threads(),
            )
            for length in LENGTHS
            for family in FAMILIES
        ]

    def claims(self, request: Request) -> Sequence[Claim]:
        ours = partial(Claim, evidence=Evidence.OURS, version=self.version)
        return [
            ours(
                statement="a recurrent layer has O(n) sequential operations and O(n·d²) work; if so, its time on this "
                "device grows as n",
                source=TABLE,
                quantity=f"exponent of BiLSTM's time in n, from n = {FROM}",
                statistic=Statistic.MEAN,
                region=Region(*LINEAR, closed=True),
                observe=_recurrent,
                n=sum(length >= FROM for length in LENGTHS),
                scatter=SCATTER,
            ),
            ours(
                statement="self-attention has O(n²·d) work, a recurrent layer O(n·d²); if so, attention's time on this "
                "device grows faster with n",
                source=TABLE,
                quantity=f"attention's exponent minus BiLSTM's, from n = {QUADRATIC_FROM}",
                statistic=Statistic.APART,
                region=Region(least=0),
                observe=_quadratic,
                n=sum(length >= QUADRATIC_FROM for length in LENGTHS),
                scatter=SCATTER_ABOVE,
                effect=1.0,
            ),
            ours(
                statement=f"self-attention's work is the smaller while n < d (here {WIDTH}); if so, it is faster than "
                "a recurrent layer on this device",
                source=TEXT,
                quantity="median step of attention minus that of BiLSTM, at every one of n = "
                f"{listed([str(length) for length in SHORT])} (to contradict: at one)",
                unit="s",
                statistic=Statistic.APART,
                region=Region(most=0),
                observe=_faster_when_short,
                n=int(RECIPE["samples"]),
                scatter=SCATTER_OF_STEPS,
                effect=SAVED,
            ),
            ours(
                statement="self-attention has O(1) sequential operations, a recurrent layer O(n); if so, attention's "
                "time on a GPU hardly grows with n while it is short",
                source=TABLE,
                quantity=f"exponent of attention's time in n, up to n = {FLAT_TO}",
                statistic=Statistic.MEAN,
                region=Region(most=FLAT),
                guard=f"without a GPU, or if BiLSTM's exponent is not above {FLAT:g} either",
                observe=partial(_flat, device=request.device),
                n=sum(length <= FLAT_TO for length in LENGTHS),
                scatter=SCATTER,
                effect=0.0,
                needs="" if request.device == "cuda" else "a GPU: seconds",
            ),
        ]

    def evaluated(self, rows: pd.DataFrame, request: Request) -> Evaluated:
        table = times(rows)
        if table.empty:
            return table, [], []
        note = (
            f"{DEPTH} layers, width d = {WIDTH}, batches of {BATCH}, forward and backward, "
            f"{table['machine'].iloc[0]}, threads: {table['threads'].iloc[0]:g}.{disturbed(table)}"
        )
        return table, [_shown(table, note)], []


def disturbed(table: pd.DataFrame) -> str:
    """A sentence on cells that other work on the machine has disturbed; empty if there are none."""
    above = int(table["share"].isna().sum())  # a step that is faster than the roofline has no share
    few = int((table["n"] < ENOUGH).sum())
    counts = {
        "are faster than the roofline that was measured with them": above,
        f"have fewer than {ENOUGH} samples": few,
    }
    signs = [f"{number} of {len(table)} steps {what}" for what, number in counts.items() if number]
    return f" Disturbed: {listed(signs)}; measure again with --rerun all on an idle machine." if signs else ""


COLUMNS = ["family", "length", "time", "step", "low", "high", "n", "machine", "threads", "share", "flops"]


def times(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per family and length that was timed: ``time``, the median ``step`` in seconds with its interval
    ``low`` to ``high``, the number ``n`` of samples, ``share`` of the roofline, and ``flops``.

    A step is all layers, forward and backward, on a batch; ``flops`` is one layer, forward, on one sequence."""
    frame = of_task(rows, "throughput")
    frame = frame[frame["status"] == Status.OK].sort_values(["family", "seq_len"])
    shares = {
        (record["family"], record["seq_len"]): record["value"]
        for record in rows_of(frame[frame["metric"] == "roofline_share"])
    }
    records = []
    for record in rows_of(frame[frame["metric"] == "step_time"]):
        step = Quantity.of("", median_interval(samples_of(record["samples"])))
        length = int(record["seq_len"])
        records.append(
            {
                "family": record["family"],
                "length": length,
                "time": step,
                **step.columns("step"),
                "n": step.n,
                "machine": record["machine"],
                "threads": record["threads"],
                "share": shares.get((record["family"], length), math.nan),
                "flops": make_family(record["family"]).sublayers[0].transform_flops(WIDTH, length),
            }
        )
    return pd.DataFrame(records, columns=COLUMNS)


def exponent(table: pd.DataFrame, family: str, *, least: int = 0, most: int = LENGTHS[-1]) -> Quantity:
    """The exponent of a family's step time in the length, between two lengths; NaN with fewer than three lengths."""
    own = table[(table["family"] == family) & table["length"].between(least, most)]
    if len(own) < 3:
        return Quantity(FAMILIES[family], math.nan, math.nan, math.nan, len(own))
    fit = stats.linregress(np.log(own["length"]), np.log(own["step"]))
    slope, half = float(fit.slope), float(stats.t.ppf((1 + CONFIDENCE) / 2, len(own) - 2) * fit.stderr)
    return Quantity(FAMILIES[family], slope, slope - half, slope + half, len(own))


def crossing(table: pd.DataFrame) -> float | None:
    """The length from which attention is always slower, interpolated between two lengths on log scales.

    ``None`` if attention is faster at the longest length, 0 if it is slower at every length, NaN if no length was timed
    for both."""
    steps = table.pivot_table(index="length", columns="family", values="step").reindex(columns=[*FAMILIES]).dropna()
    logs = np.log(steps["attention"].to_numpy() / steps["bilstm"].to_numpy())
    if not len(logs):
        return math.nan
    below = np.flatnonzero(logs < 0)
    if not len(below):
        return 0.0
    last = int(below[-1])
    if last == len(logs) - 1:
        return None
    lengths = np.log(steps.index.to_numpy(dtype=float))
    part = -logs[last] / (logs[last + 1] - logs[last])
    return float(np.exp(lengths[last] + part * (lengths[last + 1] - lengths[last])))


# -------------------------------------------------------------------------------------------------------- findings


def _recurrent(table: pd.DataFrame, _: float) -> Observation:
    return Observation(decisive=[exponent(table, "bilstm", least=FROM)])


def _quadratic(table: pd.DataFrame, _: float) -> Observation:
    ours, other = (exponent(table, family, least=QUADRATIC_FROM) for family in FAMILIES)
    return Observation(
        decisive=[apart("difference", ours, other)],
        reported=[ours, other],
        note=f"attention's FLOP, projections included, grow as n to the {_flop_exponent(QUADRATIC_FROM):.2f}",
    )


def _flop_exponent(least: int) -> float:
    lengths = [length for length in LENGTHS if length >= least]
    flops = [make_family("attention").sublayers[0].transform_flops(WIDTH, length) for length in lengths]
    return float(np.polyfit(np.log(lengths), np.log(flops), 1)[0])


def _faster_when_short(table: pd.DataFrame, _: float) -> Observation:
    steps = dict(zip(zip(table["family"], table["length"], strict=True), table["time"], strict=True))
    pairs = {
        length: (steps["attention", length], steps["bilstm", length])
        for length in SHORT
        if {(family, length) for family in FAMILIES} <= steps.keys()
    }
    gaps = [apart(f"n = {length}", ours, other, "s") for length, (ours, other) in pairs.items()]
    times = [f"n = {length}: {_time(ours)}, BiLSTM {_time(other)}" for length, (ours, other) in pairs.items()]
    gaps.sort(key=lambda gap: -gap.high)  # the length at which attention gains least is the key number
    return Observation(
        decisive=gaps,
        untestable="" if len(pairs) == len(SHORT) else f"{len(pairs)} of {len(SHORT)} lengths were timed for both",
        note="; ".join(times) + _crossing_text(crossing(table)),
    )


def _time(step: Quantity) -> str:
    """A step's time with its interval. No ratio is given, because the families are not sampled in turn."""
    return f"{quantity(step.value, 's')} [{quantity(step.low, 's')}, {quantity(step.high, 's')}]"


def _crossing_text(cross: float | None) -> str:
    """The length from which attention is slower, as the end of a sentence; empty if it is unknown."""
    if cross is None:
        return "; attention is the faster one at the longest n"
    if math.isnan(cross):
        return ""
    return f"; attention is the slower one from n ≈ {cross:.0f}" if cross else "; attention is slower at every length"


def _flat(table: pd.DataFrame, _: float, *, device: str) -> Observation:
    if device != "cuda":
        text = "not run on a GPU, and a CPU's time follows the work, not the sequential operations"
        return Observation(untestable=text)
    ours, other = (exponent(table, family, most=FLAT_TO) for family in FAMILIES)
    return Observation(
        decisive=[ours],
        reported=[other],
        untestable="" if ours.low > FLAT or other.low > FLAT else "BiLSTM's time hardly grows either",
    )


def _shown(table: pd.DataFrame, note: str) -> column.TextTable:
    """The table with one row per length, which has the columns of both families."""
    wide = table.pivot_table(index="length", columns="family", values=["step", "low", "high", "share", "flops"])
    wide.columns = wide.columns.map(lambda key: f"{key[1]}_{key[0]}")  # family and value
    columns = [column.whole("length", "n")]
    for family, name in FAMILIES.items():
        columns += [
            column.spread(
                f"{family}_step",
                f"{name}, step",
                f"{family}_low",
                f"{family}_high",
                "s",
                "median with the 95 % interval of its order statistics",
            ),
            column.number(f"{family}_flops", f"{name}, work", "FLOP", "forward, one layer, one item"),
            column.percent(f"{family}_share", f"{name}, of the roofline"),
        ]
    return column.shown("parallel-step-time", "Step time by sequence length", wide.reset_index(), columns, note=note)
