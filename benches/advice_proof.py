"""How often an advice is right: it should hold the best connection where that is known, and prefer neither copy.

``collect`` makes advices with fresh seeds, in turn of each kind, and adds a line for each to a file. Lines that are
there are not measured again, and an advice that was interrupted goes on. ``judge`` counts.

    nox -s advice-proof -- collect --minutes 5 --known reports/decide.sqlite
    nox -s advice-proof -- judge

Kinds of lines: ``known``, a family and depth at which the trainings in ``--known`` have one leader, by the rule of an
advice's own finals; the advice compares the blocks of ``decide``'s vision part, with its optimiser. ``copies``,
pre-norm against itself with other random weights, each at both starts. They are told apart where the advice uses one of
them alone, at whichever starts.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benches.lines import add_line, collected, read_lines
from highway_bench.advice.answer import Advice
from highway_bench.advice.connections import Connection
from highway_bench.advice.finals import QualityVerdict, judged
from highway_bench.advice.run import advise
from highway_bench.decide.candidate import FRESH_SEEDS, TUNING_SEEDS
from highway_bench.decide.vision import BLOCKS
from highway_bench.plugins import load_plugins
from highway_bench.provenance import identity
from highway_bench.provenance.git import source_commit
from highway_bench.report.markdown import markdown_table
from highway_bench.results import Store

ROOT = Path(__file__).resolve().parents[1]
LINES = ROOT / "docs/data/advice-proof.jsonl"
COPY = ROOT / "benches/pre_norm_copy.py"
COPIED = ("dense", 20)  # the family and depth in which copies are compared
DIGITS = "mnist-5k"  # the data of the trainings that are known
KINDS = ("known", "copies")
EACH = 20  # advices of each kind

Make = Callable[..., Advice]


@dataclass(frozen=True)
class Known:
    """A family and depth of which the ``best`` connection is known."""

    family: str
    depth: int
    best: Connection


@dataclass(frozen=True)
class Task:
    """One advice to make: the ``number``-th of its kind; ``known`` is ``None`` for copies."""

    kind: str
    number: int
    known: Known | None = None


def known_bests(store: Path) -> list[Known]:
    """The families and depths at which the finals in ``store`` have one leader."""
    losses: defaultdict[tuple[str, int], dict[Connection, dict[int, float | None]]] = defaultdict(dict)
    with Store(store, read_only=True) as opened:
        rows = opened.rows(task="trainability", metric="final_loss", axis="", dataset=DIGITS)
    for row in rows:
        if row["start"] is not None and row["seed"] < min(TUNING_SEEDS):
            runs = losses[row["family"], row["depth"]].setdefault(Connection(row["block"], row["start"]), {})
            runs[row["seed"]] = row["value"]
    return list(bests(losses))


def bests(losses: Mapping[tuple[str, int], Mapping[Connection, Mapping[int, float | None]]]) -> Iterator[Known]:
    """Those of ``losses``, by family, depth, connection and seed, that have one leader."""
    for (family, depth), runs in sorted(losses.items()):
        whole = {one: seeds for one, seeds in runs.items() if set(range(FRESH_SEEDS)) <= seeds.keys()}
        verdict = judged({one: [seeds[seed] for seed in range(FRESH_SEEDS)] for one, seeds in whole.items()})
        if len(whole) > 1 and verdict.verdict == QualityVerdict.TAKE:
            yield Known(family, depth, verdict.leaders[0])


def tasks(known: Iterable[Known]) -> list[Task]:
    """The advices to make, in turn of each kind; the known ones again and again, with other seeds."""
    known = list(known)
    copies = [Task("copies", number) for number in range(EACH)]
    held = [Task("known", number, one) for number, one in zip(range(EACH), itertools.cycle(known or [None]))]
    return [task for pair in zip(copies, held, strict=True) for task in pair if task.kind == "copies" or task.known]


def line_of(task: Task, make: Make) -> dict[str, Any]:
    """Make the advice of ``task``, and return its line."""
    if task.known is None:
        family, depth = COPIED
        advice = make(family, depth=depth, repetition=task.number, block=["pre-norm-copy"], plugins=[str(COPY)])
        best = None
    else:
        family, depth = task.known.family, task.known.depth
        recipe = {"data": DIGITS, "optimiser": "adamw"}  # as the known trainings; the steps are the advice's own
        advice = make(family, depth=depth, repetition=task.number, block=list(BLOCKS), **recipe)
        best = list(task.known.best)
    return {
        "kind": task.kind,
        "number": task.number,
        "family": family,
        "depth": depth,
        "best": best,
        "verdict": str(advice.verdict),
        "use": [list(one) for one in advice.use],
        "seeds": advice.quality.seeds,
        "steps": list(advice.ladder),
        "minutes": advice.about["minutes"],
    }


def collect(todo: Iterable[Task], file: Path, make: Make) -> None:
    """Make the advices that ``file`` lacks, and add a line for each."""
    done = {(line["kind"], line["number"]) for line in read_lines(file)}
    for task in todo:
        if (task.kind, task.number) not in done:
            line = line_of(task, make)
            about = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "commit": source_commit()}
            add_line(file, {**line, **about, "machine": identity("cpu").machine})


def counts(lines: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many advices hold the known best, and how many prefer one of two copies."""
    lines = list(lines)
    of = {kind: [line for line in lines if line["kind"] == kind] for kind in KINDS}
    return {
        "known": len(of["known"]),
        "held": sum(line["best"] in line["use"] for line in of["known"]),
        "copies": len(of["copies"]),
        "apart": sum(len({block for block, _ in line["use"]}) == 1 for line in of["copies"]),
    }


def judge(file: Path) -> list[str]:
    """The counts of the lines in ``file`` as a table in Markdown."""
    lines = collected(file)
    undecided = sum(line["verdict"] == QualityVerdict.UNDECIDED for line in lines)
    heads = ["advices where the best is known", "hold it", "copies of pre-norm", "one preferred", "undecided"]
    return markdown_table(heads, [[str(number) for number in (*counts(lines).values(), undecided)]])


def main() -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("collect", "judge"))
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--known", type=Path, help="a store of decide; without it, only copies are compared")
    parser.add_argument("--kind", choices=KINDS, help="only these; by default both in turn")
    parser.add_argument("--file", type=Path, default=LINES)
    parser.add_argument("--out", type=Path, default=Path("reports/advice-proof"))
    given = parser.parse_args()
    if given.command == "judge":
        sys.stdout.write("\n".join([*judge(given.file), ""]))
        return
    load_plugins([str(COPY)])

    def make(family: str, **words: Any) -> Advice:
        return advise(family, minutes=given.minutes, out=given.out, progress=True, **words)

    todo = tasks(known_bests(given.known) if given.known else [])
    collect([task for task in todo if given.kind in (None, task.kind)], given.file, make)


if __name__ == "__main__":
    main()
