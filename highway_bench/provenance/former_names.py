"""Former names of machines: which machine measured what versions up to 0.2 recorded.

Those versions named a machine by its processor's brand and cores, and several processors are sold under one brand.
Where what is on record tells them apart, it is of the machine that measured it. The rest keeps its former name, which
no machine has now, so nothing is compared with it.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, NamedTuple

import psutil

from highway_bench.provenance.machine import host, processor, slug


class Period(NamedTuple):
    """What was measured under a ``former`` name from ``since`` until before ``until`` is of ``machine``: its name now,
    or the former one where nothing tells which it was. Times are UTC, ISO 8601."""

    former: str
    since: str
    until: str
    machine: str


ON_RECORD: Final = (
    # The history's losses under "AMD EPYC" are all of AVX-512: the same code gives others with AVX2. Family 26 is named
    # by docs/data/benchmark-overhead.json, and convolves at 285 GFLOP/s in one thread. Where convolutions took three
    # times as long, or gates cost a fifth less beside them, it was the only other such EPYC on record, which
    # docs/data/benchmark-population.json names.
    Period("cpu-amd-epyc-2c", "2026-11-22T19", "2026-11-22T21", "cpu-amd-epyc-f25m17-avx512-2c"),
    Period("cpu-amd-epyc-2c", "2026-11-23T15", "2026-11-23T19", "cpu-amd-epyc-f25m17-avx512-2c"),
    Period("cpu-amd-epyc-2c", "2026-11-24T22", "2026-11-25T06", "cpu-amd-epyc-f26m2-avx512-2c"),
    Period("cpu-amd-epyc-2c", "2026-11-25T12", "2026-11-25T18", "cpu-amd-epyc-f25m17-avx512-2c"),
    # Nothing tells these apart.
    Period("cpu-amd-epyc-2c", "2026-11-21", "2026-11-29T12", "cpu-amd-epyc-2c"),
    Period("cpu-intel-xeon-2c", "2026-11-21", "2026-11-29T12", "cpu-intel-xeon-2c"),
    Period("nvidia-h100-80gb-hbm3-intel-xeon", "2026-11-21", "2026-11-29T12", "nvidia-h100-80gb-hbm3-intel-xeon"),
)
"""What this project has on record, in docs/data and reports/asv/results; the first period that holds counts."""


def machine_of(old_name: str, evidence: Mapping[str, Any]) -> str:
    """The machine that measured what is recorded under ``old_name``; a present name is its own.

    ``evidence`` is the run's record, or as much of it as there is: when it ``started`` (UTC, ISO 8601), and ``cores``.
    Besides what is known of ``ON_RECORD``, this machine has what is recorded under its own former name, if the brand in
    it has a number (``cpu-amd-epyc-7763-64-core-2c``). A brand without one, as virtual machines have, is several
    processors: of these it has what was measured since it was started.
    """
    started = str(evidence.get("started") or "")
    for period in ON_RECORD:
        if period.former == old_name and period.since <= started < period.until:
            return period.machine
    for brand in {slug(processor().brand), slug(platform.processor() or platform.machine())}:
        here = _name_here(old_name, brand, evidence.get("cores"))
        if here is not None and (re.search(r"\d{3}", brand) or started >= _booted()):
            return here
    return old_name


def is_told_apart(name: str, entry: Mapping[str, Any]) -> bool:
    """Whether ``name`` is of one machine: it is not one that a version up to 0.2 gave to every processor of a brand.

    ``entry`` has what asv knows of the machine: ``os``, ``cpu``, ``gpu``, ``num_cpu``. Only Linux says more of a
    processor than its brand, so elsewhere a former name is the present one.
    """
    brand = slug(str(entry.get("cpu")))
    former = (f"cpu-{brand}-{entry.get('num_cpu')}c", f"{slug(str(entry.get('gpu')))}-{brand}")
    return entry.get("os") != "Linux" or name not in former


def _name_here(former: str, brand: str, cores: int | None) -> str | None:
    """The present name of this machine, if ``former`` was its name; that of a GPU lacked the ``cores``."""
    if about := re.fullmatch(rf"cpu-{re.escape(brand)}-(\d+)c", former):
        return f"cpu-{host()}-{about[1]}c"
    if former.endswith(f"-{brand}") and cores is not None:
        return f"{former.removesuffix(f'-{brand}')}_{host()}-{cores}c"
    return None


@cache
def _booted() -> str:
    return datetime.fromtimestamp(psutil.boot_time(), UTC).isoformat()
