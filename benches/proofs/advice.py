"""How often an advice is right: it should hold the best connection where that is known, and prefer neither copy.

``collect`` makes advices with fresh seeds, in turn of each kind, and adds a line for each to a file. Lines that are
there are not measured again, and an advice that was interrupted goes on. ``judge`` counts.

    nox -s proof -- advice collect --known reports/decide.sqlite
    nox -s proof -- advice judge

Kinds of lines: ``known``, a family and depth at which the trainings of ``decide`` in ``--known`` have one leader, by
the rule of an advice's own finals; the advice asks what these trainings asked, with the same blocks, data, sizes,
optimiser and steps. On a slow machine its minutes may leave the best out, which counts as wrong. ``copies``, pre-norm
against itself with other random weights, each at both starts. The advice is wrong where it uses one of the two alone,
at whichever starts.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benches.proofs.lines import add_line, collected, read_lines
from highway_bench.cell import Cell, canonical
from highway_bench.errors import BadInput, HighwayBenchError, NothingMeasured
from highway_bench.frames.rows import rows_of, without_start
from highway_bench.measure.statistics import wilson
from highway_bench.plan.settings import FRESH_SEEDS
from highway_bench.plugins import load_plugins
from highway_bench.provenance import identity
from highway_bench.provenance.git import source_commit
from highway_bench.report.columns import markdown_table
from highway_bench.report.format import NONE, listed
from highway_bench.results import Store
from highway_bench.studies.advice.answer import Advice, Learning
from highway_bench.studies.advice.finals import QualityVerdict, judged
from highway_bench.studies.advice.request import RULES, Connection
from highway_bench.studies.advice.run import advise
from highway_bench.studies.comparison.finals import alike, finals
from highway_bench.studies.decide.part import dense, vision

ROOT = Path(__file__).resolve().parents[2]
LINES = ROOT / "docs/data/advice-proof.jsonl"
COPY = ROOT / "benches/proofs/pre_norm_copy.py"
COPIED = ("dense", 20)  # the family and depth in which copies are compared
KINDS = {"known": "the best is known", "copies": "pre-norm and a copy of it"}
REPETITIONS = range(20 * RULES, 20 * RULES + 20)  # of each kind; other rules have other seeds
HEADS = (
    *("advices", "rules", "family", "number", "right [95 %]", "best left out", "*take*", "wrong ones", "*undecided*"),
    *("minutes", "by"),
)

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


def templates() -> dict[str, list[Cell]]:
    """The cells of the candidates in ``decide``'s parts dense and vision, by family."""
    cells = [one.template for part in (dense(), vision()) for one in part.candidates]
    families = sorted({cell.family for cell in cells})
    return {family: [cell for cell in cells if cell.family == family] for family in families}


def question(family: str) -> dict[str, Any]:
    """What ``decide`` asks of a family, in the words of an advice. Only the length of the warm-up is the advice's."""
    cells = templates()[family]
    recipe = cells[0].recipe
    return {
        "block": list(dict.fromkeys(cell.block for cell in cells)),
        "data": cells[0].dataset,
        "data_options": {"pooled": 1, **recipe.get("dataset", {})},
        "optimiser": recipe["optimiser"],
        "steps": recipe["steps"],
        "width": cells[0].nominal_width,
        "batch_size": cells[0].batch_size,
    }


def known_bests(store: Path) -> list[Known]:
    """The families and depths at which the finals in ``store`` have one leader."""
    with Store(store, read_only=True) as opened:
        every = finals(opened.frame())
    losses: defaultdict[tuple[str, int], dict[Connection, dict[int, float | None]]] = defaultdict(dict)
    for family, (cell, *_) in templates().items():
        asked = {"family": family, "nominal_width": cell.nominal_width, "recipe": canonical(cell.recipe)}
        for row in rows_of(alike(every, asked, list(asked))):
            runs = losses[family, row["depth"]].setdefault(Connection(without_start(row["block"]), row["start"]), {})
            runs[row["seed"]] = None if math.isnan(row["loss"]) else row["loss"]
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
    copies = [Task("copies", number) for number in REPETITIONS]
    held = [Task("known", number, one) for number, one in zip(REPETITIONS, itertools.cycle(known or [None]))]
    return [task for pair in zip(copies, held, strict=True) for task in pair if task.kind == "copies" or task.known]


def line_of(task: Task, make: Make) -> dict[str, Any]:
    """Make the advice of ``task``, and return its line. Raises ``NothingMeasured`` if a measurement failed."""
    if task.known is None:
        family, depth = COPIED
        words = {**question(family), "block": ["pre-norm-copy"], "plugins": [str(COPY)]}
        best = None
    else:
        family, depth = task.known.family, task.known.depth
        words, best = question(family), list(task.known.best)
    advice = make(family, depth=depth, repetition=task.number, **words)
    if advice.exit_status:
        raise NothingMeasured(advice.notes[-1])
    left_out = [list(one.connection) for one in advice.results if one.learning == Learning.LEFT_OUT]
    return {
        "kind": task.kind,
        "rules": RULES,
        "number": task.number,
        "family": family,
        "depth": depth,
        "best": best,
        **({"best_left_out": best in left_out} if best else {}),
        "verdict": str(advice.verdict),
        "use": [list(one) for one in advice.use],
        "seeds": advice.quality.seeds,
        "steps": list(advice.ladder),
        "minutes": advice.about["minutes"],
    }


def collect(todo: Iterable[Task], file: Path, make: Make) -> int:
    """Make the advices that ``file`` lacks, and add a line for each; how many were refused or failed, and have none."""
    done = {(line["kind"], line["number"]) for line in read_lines(file)}
    refused = 0
    for task in todo:
        if (task.kind, task.number) in done:
            continue
        try:
            line = line_of(task, make)
        except (BadInput, NothingMeasured) as error:  # such as a step that was slow on a busy machine
            sys.stderr.write(f"{task.kind} {task.number}: {error}\n")
            refused += 1
            continue
        about = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "commit": source_commit()}
        add_line(file, {**line, **about, "machine": identity("cpu").machine})
    return refused


def is_right(line: Mapping[str, Any]) -> bool:
    """Whether an advice holds the best connection, or prefers neither of two copies."""
    if line["kind"] == "known":
        return line["best"] in line["use"]
    return len({block for block, _ in line["use"]}) != 1


def judge(file: Path) -> list[str]:
    """How often the advices in ``file`` are right, by kind, rules and family, and in all, as a table in Markdown."""
    lines = collected(file)
    rows = []
    for kind, about in KINDS.items():
        own = [line for line in lines if line["kind"] == kind]
        for rules in sorted({line["rules"] for line in own}):
            alike = [line for line in own if line["rules"] == rules]
            families = sorted({line["family"] for line in alike})
            groups = {family: [line for line in alike if line["family"] == family] for family in families}
            if len(families) > 1:
                groups["all"] = alike
            rows += [[about, str(rules), family, *_judged(group)] for family, group in groups.items()]
        rows += [] if own else [[about, "", "", "0", "not measured", *[""] * 6]]
    return markdown_table(HEADS, rows)


def _judged(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    right = [is_right(line) for line in lines]
    taken = [held for held, line in zip(right, lines, strict=True) if line["verdict"] == QualityVerdict.TAKE]
    share = wilson(sum(right), len(right))
    wrong = [line for held, line in zip(right, lines, strict=True) if not held]
    says = bool(lines[0]["best"]) and all("best_left_out" in line for line in wrong)  # older lines do not
    return [
        str(len(lines)),
        f"{sum(right)} [{100 * share.low:.0f} %, {100 * share.high:.0f} %]",
        str(sum(line["best_left_out"] for line in wrong)) if says else NONE,
        str(len(taken)),
        str(taken.count(False)),
        str(sum(line["verdict"] == QualityVerdict.UNDECIDED for line in lines)),
        listed(sorted({f"{line['minutes']:g}" for line in lines})),
        listed(sorted({f"{line['commit'][:8]} on {line['machine']}" for line in lines})),
    ]


def main() -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("collect", "judge"))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--known", type=Path, help="a store of decide; without it, only copies are compared")
    parser.add_argument("--kind", choices=KINDS, help="only these; by default both in turn")
    parser.add_argument("--file", type=Path, default=LINES)
    parser.add_argument("--out", type=Path, default=Path("reports/advice-proof"))
    given = parser.parse_args()
    if given.command == "judge":
        sys.stdout.write("\n".join([*judge(given.file), ""]))
        return

    def make(family: str, **words: Any) -> Advice:
        return advise(family, minutes=given.minutes, out=given.out, progress=True, **words)

    try:
        load_plugins([str(COPY)])
        known = known_bests(given.known) if given.known else []
        unknown = f"{given.known} has no finals with one leader" if given.known else "--known names no store of decide"
        todo = [task for task in tasks(known) if given.kind in (None, task.kind)]
        if not known and given.kind != "copies":
            if given.kind:
                raise NothingMeasured(unknown)
            sys.stderr.write(f"only copies are compared: {unknown}\n")
        refused = collect(todo, given.file, make)
    except HighwayBenchError as error:
        parser.exit(error.exit_status, f"{error}\n")
    parser.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
