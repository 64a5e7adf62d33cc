"""Whether the ratios of ``standard`` are those of an idle machine when other programs run on the same cores.

``collect`` times the grid of ``standard`` once, next to a load if one is named, and adds a line with all its ratios to
plain. ``judge`` compares each run under a load with the idle run before it on the same machine.

    nox -s proof -- load collect
    nox -s proof -- load collect --load 2 --runs 5
    nox -s proof -- load judge
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import pandas as pd

from benches.proofs.lines import add_line, collected
from benches.proofs.loads import run_command, running
from highway_bench.frames.results import open_results
from highway_bench.history.machine import this_machine
from highway_bench.measure.statistics import SHIFT_BY_WAITING
from highway_bench.provenance.git import git
from highway_bench.report.columns import PERCENT, is_decided, markdown_table

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs/data/load-proof.jsonl"
COMMAND = ("run", "throughput", "--profile", "standard")
CELL = ("block", "family", "depth", "seq_len", "threads")

Ratio = tuple[float, float, float]
"""A ratio with its interval; NaN where there is none."""


def collect(load: str, runs: int, file: Path) -> None:
    """Add a line for each of ``runs`` runs next to a load."""
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder, running(load):
            store = Path(folder) / "results.sqlite"
            started = datetime.now(UTC).isoformat(timespec="seconds")
            subprocess.run([sys.executable, "-m", "highway_bench", *COMMAND, "--store", str(store)], check=True)
            rows = open_results(store).ratios()
        line = {
            "load": load,
            "at": started,
            "commit": git(ROOT, "rev-parse", "HEAD"),
            "machine": this_machine("cpu").name,
            "waited": round(float(rows["waited"].median()), 3),
            "shift_by_waiting": SHIFT_BY_WAITING,
            "ratios": ratios_of(rows),
        }
        add_line(file, line)


def ratios_of(rows: pd.DataFrame) -> dict[str, Ratio]:
    """Each cell's ratio to plain's step."""
    others = rows[rows["block"] != "plain"]
    names = [" ".join(map(str, cell)) for cell in others[list(CELL)].itertuples(index=False)]
    values = others[["ratio", "ratio_low", "ratio_high"]].astype(float).round(5)
    return {
        name: (ratio, low, high) for name, (ratio, low, high) in zip(names, values.to_numpy().tolist(), strict=True)
    }


def judge(file: Path) -> list[str]:
    """A table in Markdown with a row for each run: its undecided ratios, and how the others differ from the idle
    run's."""
    lines, rows = collected(file), []
    heads = [
        "load",
        "run",
        "machine",
        "commit",
        "steps waited for a core",
        "error of shifts included",
        f"undecided (± {PERCENT})",
        "decided ratios whose interval meets the idle run's",
        "largest difference",
        "median difference",
    ]
    idle: dict[str, Mapping[str, Ratio]] = {}
    for line in lines:
        ratios = {name: tuple(ratio) for name, ratio in line["ratios"].items()}
        decided = {name: ratio for name, ratio in ratios.items() if is_decided(*ratio)}
        waited = line["waited"]
        shift = f"{100 * line['shift_by_waiting'] * waited:.1f} %"
        about = (line["at"][:16], line["machine"], line["commit"][:8], f"{100 * waited:.0f} %", shift)
        undecided = f"{len(ratios) - len(decided)} of {len(ratios)}"
        if line["load"] == "idle":
            idle[line["machine"]] = decided
            rows.append(["idle", *about, undecided, "", "", ""])
        else:
            rows.append([line["load"], *about, undecided, *compared(decided, idle.get(line["machine"], {}))])
    return markdown_table(heads, rows)


def compared(loaded: Mapping[str, Ratio], idle: Mapping[str, Ratio]) -> Sequence[str]:
    """How decided ratios meet those of the idle run, their largest and their median difference."""
    both = [(loaded[name], idle[name]) for name in loaded if name in idle]
    if not both:
        return ("no idle run before it", "", "")
    meet = sum(low <= other_high and other_low <= high for (_, low, high), (_, other_low, other_high) in both)
    differences = [abs(value / other - 1) for (value, *_), (other, *_) in both]
    return (f"{meet} of {len(both)}", f"{100 * max(differences):.1f} %", f"{100 * median(differences):.1f} %")


def main() -> None:
    """Run the command that the arguments name."""
    run_command(__doc__, FILE, ("runs", 1), collect, judge)


if __name__ == "__main__":
    main()
