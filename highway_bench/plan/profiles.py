"""Profiles: named lists of grids.

`smoke` measures every combination once, in about a minute. `standard` times every connection on this machine and
repeats known trainings, in about ten minutes. `frontier` finds the greatest trainable depth of each block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from highway_bench.cell import DEPTH_AWARE, STARTS
from highway_bench.errors import UnknownName
from highway_bench.plan.grid import (
    MODERN,
    SHORT_RUNS,
    SMALL,
    Grid,
    counting,
    first_steps,
    ladder,
    memory,
    other_than,
    short_curve,
    skipping_ladder,
    start,
    timing,
    trained_gates,
)
from highway_bench.plan.settings import BILSTM, CONV, CONV_PAIR, DENSE, LANGUAGE, TRANSFORMER


@dataclass(frozen=True)
class Profile:
    """A named list of grids, and its purpose in one line."""

    name: str
    summary: str
    grids: tuple[Grid, ...]


DEEP_START = (DEPTH_AWARE,)

# The recipe of a throughput cell. Those of `standard` have the task's defaults.
ONCE = {"seconds": 0.02, "samples": 3, "processes": 1, "limit": 0}

SMOKE = Profile(
    "smoke",
    "every combination once, in about a minute: checks that everything runs",
    (
        memory(depths=(2,), on_cpu=SMALL, on_gpu=None),
        timing(recipe=ONCE, depths=(2,), phases=("forward",), on_cpu=SMALL, on_gpu=None),
        timing(recipe=ONCE, families=("dense",), depths=(2,), phases=("forward-backward", "train-step"), groups=MODERN),
        timing(recipe=ONCE, families=("attention",), depths=(2,), phases=("forward",), seq_lens=(16,)),
        ladder(steps=20, seeds=2, rates=(0.1, 0.01), families=("dense",), depths=(2,)),
        short_curve(steps=5, families=SHORT_RUNS, depths=(2,)),
        short_curve(steps=5, families=("transformer",), depths=(2,), groups=MODERN, starts=STARTS),
        short_curve(steps=5, families=("bilstm",), blocks=("highway",), depths=(1,), dataset="adding", seq_lens=(20,)),
        Grid(task="cost", depths=(2,), on_cpu=SMALL),
        trained_gates(steps=5, families=("dense",), depths=(2,)),
        start(depths=(2,), on_cpu=SMALL),
        first_steps(steps=2, families=("dense",), depths=(2,), on_cpu=SMALL),
    ),
)

TIMED_AT = ((DENSE, 50), (CONV, 10), (CONV_PAIR, 10), (BILSTM, 10), (TRANSFORMER, 10), (LANGUAGE, 6))
OTHERS = other_than(*(setting.family for setting, _ in TIMED_AT))

STANDARD = Profile(
    "standard",
    "all connections timed, and known trainings repeated, on two CPU cores in about ten minutes",
    (
        *(grid for setting, depth in TIMED_AT for grid in setting.costs(depth)),
        memory(families=OTHERS),
        timing(phases=("forward-backward",), families=OTHERS),
        timing(phases=("forward-backward",), families=("dense",), depths=(10,), threads=None),
        timing(
            phases=("forward-backward",),
            families=("dense", "transformer"),
            modes=(),  # on a CPU compiling takes minutes
            gpu_modes=("eager", "compile", "cudagraph"),
        ),
        # Columns of the known results, as many as fit in the time. A user's layer trains as in its kind's first grid.
        DENSE.repeated(10, 20),
        BILSTM.repeated(5),
        replace(CONV.repeated(5), users_only=True),
        short_curve(steps=60, families=SHORT_RUNS, starts=DEEP_START),
        counting(),
        trained_gates(steps=100, families=("dense",), depths=(10,), starts=DEEP_START),
        trained_gates(steps=100, families=("bilstm", "conv"), depths=(10,), starts=DEEP_START, users_only=True),
        start(families=("dense",), depths=(10, 50, 100), seeds=range(3), starts=DEEP_START),
        start(families=other_than("dense"), depths=(10,), seeds=range(3), seq_lens=(16,), starts=DEEP_START),
        first_steps(steps=5, families=("dense",), depths=(50,), seeds=range(3), starts=DEEP_START),
    ),
)

THOUSAND = (10, 20, 50, 100, 200, 500, 1000)
TWO_HUNDRED = THOUSAND[:5]

# A verdict on depth may be due to the budget, the start or the branch. Each has a grid of its own.
FRONTIER = Profile(
    "frontier",
    "the greatest trainable depth of each block: ladders to 1,000 layers, ten seeds; for a night",
    (
        skipping_ladder(families=("dense",), depths=THOUSAND),
        skipping_ladder(families=("dense",), depths=TWO_HUNDRED, steps=1_200),
        skipping_ladder(families=("dense", "dense-pair"), depths=TWO_HUNDRED, starts=STARTS),
    ),
)

PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (SMOKE, STANDARD, FRONTIER)}


def get_profile(name: str) -> Profile:
    """The profile called ``name``; raises ``UnknownName`` with near names."""
    try:
        return PROFILES[name]
    except KeyError:
        raise UnknownName("profile", name, PROFILES) from None
