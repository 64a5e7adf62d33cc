"""How much the proof by faults does, a little by default and in full with HIGHWAY_BENCH_FAULTS=full, and its figures.

``HIGHWAY_BENCH_KILLS``, ``_NODES`` and ``_INPUTS`` are the numbers of kills, killed nodes and inputs in this call. With
``HIGHWAY_BENCH_CHAIN``, a folder, kills and inputs go on where the last call ended. ``HIGHWAY_BENCH_FIGURES`` is the
JSON file to which the figures are added.
"""

import json
import os
from pathlib import Path

FULL = os.environ.get("HIGHWAY_BENCH_FAULTS") == "full"
KILLS = int(os.environ.get("HIGHWAY_BENCH_KILLS", "200" if FULL else "6"))
NODES = int(os.environ.get("HIGHWAY_BENCH_NODES", "20" if FULL else "2"))  # killed in a chain
INPUTS = int(os.environ.get("HIGHWAY_BENCH_INPUTS", "10000" if FULL else "200"))
SHELL_INPUTS = 40 if FULL else 4  # of them, by a process of their own
CHAIN = os.environ.get("HIGHWAY_BENCH_CHAIN")
FIGURES = os.environ.get("HIGHWAY_BENCH_FIGURES")


def note(proof, **figures):
    """Add the figures of one proof to the file of figures, if one is named, and print them."""
    print(f"{proof}: {figures}")  # noqa: T201
    if FIGURES:
        path = Path(FIGURES)
        every = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(every | {proof: figures}, indent=1) + "\n", encoding="utf-8")
