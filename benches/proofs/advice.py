"""How good an advice is: what it loses against the best connection, and whether it prefers neither of two copies.

``collect`` makes advices with fresh seeds and adds a line for each to a file. Lines that are there are not measured
again, and an advice or a training that was interrupted goes on. ``judge`` counts.

    nox -s proof -- advice collect --kind regret
    nox -s proof -- advice judge

Kinds of lines: ``regret``, a setting of ``SETTINGS``, which no rule of an advice was made with, and ten candidates. The
truth comes from long runs: every candidate is tuned with one seed; then the four of the lowest held-out losses,
pre-norm, and whatever a method chose train with five fresh seeds at their best rates. The regret of a method is how far
the held-out loss of its choice is above the lowest one. The methods are the advice, pre-norm always, the answer of the
page for the nearest kind and depth, and the leader of the advice's first rung.

``copies``, pre-norm against itself with other random weights, each at both starts. The advice is wrong where it uses
one of the two alone, at whichever starts. ``known`` lines are of an older proof; the rules were made with its settings.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

from benches.proofs.lines import add_line, collected, read_lines
from highway_bench.cell import Cell
from highway_bench.errors import BadInput, HighwayBenchError, NothingMeasured
from highway_bench.execution.progress import showing_progress
from highway_bench.frames.results import open_results
from highway_bench.frames.rows import rows_of
from highway_bench.measure.statistics import IntervalEstimate, t_interval, wilson
from highway_bench.plan.settings import FRESH_SEEDS
from highway_bench.plugins import load_plugins
from highway_bench.provenance import identity
from highway_bench.provenance.git import source_commit
from highway_bench.report.choice.answers import known_answers
from highway_bench.report.choice.ranking import depths_of, kind_named, ranking
from highway_bench.report.columns import markdown_table
from highway_bench.report.format import NONE, between, listed, three
from highway_bench.studies.advice.answer import Advice
from highway_bench.studies.advice.finals import QualityVerdict
from highway_bench.studies.advice.request import RULES, AdviceRequest, Connection, requested
from highway_bench.studies.advice.run import advise
from highway_bench.studies.decide.candidate import REFERENCE, TUNING_SEEDS, Candidate
from highway_bench.studies.decide.part import dense
from highway_bench.studies.decide.rounds import Trainer

ROOT = Path(__file__).resolve().parents[2]
LINES = ROOT / "docs/data/advice-proof.jsonl"
COPY = ROOT / "benches/proofs/pre_norm_copy.py"
COPIED = ("dense", 20)  # the family and depth in which copies are compared
KINDS = {"known": "the best is known", "copies": "pre-norm and a copy of it"}
REPETITIONS = range(20 * RULES, 20 * RULES + 20)  # of copies; other rules have other seeds
HEADS = (
    *("advices", "rules", "family", "number", "right [95 %]", "best left out", "*take*", "wrong ones", "*undecided*"),
    *("minutes", "by"),
)

Make = Callable[..., Advice]


class Setting(NamedTuple):
    """A layer at a depth and width, and the steps of its long runs; ``kind`` is the nearest one that the page has."""

    layer: str
    depth: int
    width: int
    kind: str
    steps: int


SETTINGS: Final = (
    Setting("tests/layers/swish.py:layer", 24, 64, "mlp", 1_800),
    Setting("tests/layers/gru.py:layer", 8, 32, "bilstm", 1_200),
    Setting("mlp", 20, 64, "mlp", 1_800),
    Setting("attention", 8, 32, "transformer", 1_200),
    Setting("dense", 30, 48, "mlp", 1_800),  # a depth and a width of its own
    Setting("conv-pair", 2, 16, "conv-pair", 1_200),  # so shallow that the truth should be a tie
)
"""Written before any of them was run."""
BLOCKS: Final = ("residual", "highway", "post-norm", "rezero", "layerscale")
"""With pre-norm, at their starts, these are ten candidates."""
BEST: Final = 4
"""Candidates of the lowest losses with one seed, which train with fresh seeds."""
ADVISE, ALWAYS, NEAREST, FIRST = "advise", "pre-norm always", "nearest kind", "first rung"
METHODS: Final = (ADVISE, ALWAYS, NEAREST, FIRST)
"""Methods that choose a connection."""


def copies_line(number: int, make: Make) -> dict[str, Any]:
    """Make an advice on pre-norm and its copy, and return its line."""
    family, depth = COPIED
    cells = [one.template for one in dense().candidates if one.template.family == family]
    question = {"data": cells[0].dataset, "data_options": {"pooled": 1}, "optimiser": cells[0].recipe["optimiser"]}
    question |= {"steps": cells[0].recipe["steps"], "width": cells[0].nominal_width, "batch_size": cells[0].batch_size}
    advice = made(
        make, family, depth=depth, repetition=number, block=["pre-norm-copy"], plugins=[str(COPY)], **question
    )
    return {
        "kind": "copies",
        "rules": RULES,
        "number": number,
        "family": family,
        "depth": depth,
        "best": None,
        "verdict": str(advice.verdict),
        "use": [list(one) for one in advice.use],
        "seeds": advice.quality.seeds,
        "steps": list(advice.ladder),
        "minutes": advice.about["minutes"],
    }


def regret_line(number: int, make: Make, trainer: Trainer, minutes: float) -> dict[str, Any]:
    """Make the advice on a setting, find the truth, and return the line: each method's choice, and of each connection
    with fresh seeds the held-out loss by seed and its step over pre-norm's."""
    setting = SETTINGS[number]
    words: dict[str, Any] = {"block": list(BLOCKS), "data": "mnist-5k", "width": setting.width}
    request = requested(setting.layer, depth=setting.depth, minutes=1, **words)
    chosen: dict[str, Connection | None] = {
        ALWAYS: request.connections[0],
        NEAREST: nearest(setting, request.connections),
    }
    refused, steps = "", {}
    try:
        advice = made(make, setting.layer, depth=setting.depth, repetition=1, **words)
    except (BadInput, NothingMeasured) as error:
        refused = str(error)
    else:
        chosen |= {ADVISE: next(iter(advice.use), None), FIRST: first_rung(advice)}
        steps = {" · ".join(one.connection): one.cost.step.value for one in advice.results}
    held_out = truth(request, setting.steps, [one for one in chosen.values() if one], trainer)
    return {
        "kind": "regret",
        "rules": RULES,
        "number": number,
        **setting._asdict(),
        "refused": refused,
        "minutes": minutes,
        "chosen": {method: " · ".join(one) if one else None for method, one in chosen.items()},
        "held_out": {" · ".join(one): losses for one, losses in held_out.items()},
        "step": {name: value for name, value in steps.items() if math.isfinite(value)},
    }


def made(make: Make, layer: str, **words: Any) -> Advice:
    """An advice. Raises ``NothingMeasured`` if a measurement failed."""
    advice = make(layer, **words)
    if advice.exit_status:
        raise NothingMeasured(advice.notes[-1])
    return advice


def nearest(setting: Setting, candidates: Sequence[Connection]) -> Connection | None:
    """The best of ``candidates`` that the page has for the nearest kind, at its depth nearest in ratio."""
    table, kind = known_answers(), kind_named(setting.kind)
    depth = min(depths_of(table, kind), key=lambda one: abs(math.log(one / setting.depth)))
    trained = (Connection(row["connection"], row["start"]) for row in ranking(table, kind, depth).trained)
    return next((one for one in trained if one in candidates), None)


def first_rung(advice: Advice) -> Connection | None:
    """The connection of the lowest loss after the first rung, at any rate."""
    rows = open_results(advice.store).rows
    rows = rows[rows["task"].eq("trainability") & rows["metric"].eq("final_loss") & rows["value"].notna()]
    own = rows[rows["as_run"].map(lambda text: json.loads(text)["steps"]).eq(advice.ladder[0])]
    least = min(rows_of(own), key=lambda row: row["value"], default=None)
    return None if least is None else Connection(least["block"], least["start"])


def truth(
    request: AdviceRequest, steps: int, chosen: Sequence[Connection], trainer: Trainer
) -> dict[Connection, dict[str, float | None]]:
    """The held-out losses by fresh seed, ``None`` where a run diverged, of the best four connections, of pre-norm's and
    of those that were ``chosen``."""
    tuned = {one: candidate(request, one, steps) for one in request.connections}
    trainings = trainer.train(
        lambda known: [cell for one in tuned.values() for cell in one.tries(request.depth, one.first, known)]
    )
    best_rates = {one: own.run(request.depth, own.rate(request.depth, trainings), TUNING_SEEDS[0])
                  for one, own in tuned.items()}  # fmt: skip
    scores = held_out(trainer, best_rates.values())
    ranked = sorted(tuned, key=lambda one: scores[best_rates[one]] or math.inf)
    kept = dict.fromkeys([*ranked[:BEST], *chosen, *(one for one in tuned if one.block == REFERENCE)])
    runs = {one: tuned[one].counted(request.depth, trainings) for one in kept}
    losses = held_out(trainer, [cell for cells in runs.values() for cell in cells])
    return {one: {str(cell.seed): losses[cell] for cell in cells} for one, cells in runs.items()}


def held_out(trainer: Trainer, cells: Iterable[Cell]) -> dict[Cell, float | None]:
    """The held-out losses of trainings, ``None`` of those that diverged. Raises ``NothingMeasured`` if one failed."""
    result = trainer.measure(cells)
    if trainer.failures:
        raise NothingMeasured(trainer.failures)
    losses = result.rows[result.rows["metric"].eq("test_loss") & result.rows["value"].notna()]
    by_digest = dict(zip(losses["digest"], map(float, losses["value"]), strict=True))
    return {cell: by_digest.get(digest) for cell, digest in result.summary.digests.items()}


def candidate(request: AdviceRequest, one: Connection, steps: int) -> Candidate:
    """A connection with one tuning seed, and five fresh ones at its best rate."""
    cell = request.run(one, steps, 0.1, 0)
    recipe = {word: value for word, value in cell.recipe.items() if word not in ("rate", "evaluate")}
    words: dict[str, Any] = {"fresh": range(FRESH_SEEDS), "more": (), "tuning": TUNING_SEEDS[:1]}
    return Candidate(cell.but(seed=None, recipe=recipe), (request.depth,), request.first_rates, **words)


def collect(kind: str, numbers: Iterable[int], file: Path, line_of: Callable[[int], dict[str, Any]]) -> int:
    """Make the lines of a kind that ``file`` lacks; how many were refused or failed, and have none."""
    done = {(line["kind"], line["number"]) for line in read_lines(file) if line["rules"] == RULES}
    refused = 0
    for number in numbers:
        if (kind, number) in done:
            continue
        try:
            line = line_of(number)
        except (BadInput, NothingMeasured) as error:  # such as a step that was slow on a busy machine
            sys.stderr.write(f"{kind} {number}: {error}\n")
            refused += 1
            continue
        about = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "commit": source_commit()}
        add_line(file, {**line, **about, "machine": identity("cpu").machine})
    return refused


def regrets(line: Mapping[str, Any]) -> dict[str, IntervalEstimate | None]:
    """By method: how much its choice's held-out loss is above the lowest mean one, in per cent, paired by seed;
    ``None`` where it chose nothing, and infinite where a run diverged."""
    losses = {
        name: {seed: math.inf if loss is None else loss for seed, loss in own.items()}
        for name, own in line["held_out"].items()
    }
    best = min(losses, key=lambda name: fmean(losses[name].values()))
    level = fmean(losses[best].values())

    def regret(name: str | None) -> IntervalEstimate | None:
        if name is None:
            return None
        seeds = sorted(losses[name].keys() & losses[best].keys())
        values = [100 * (losses[name][seed] - losses[best][seed]) / level for seed in seeds]
        return (
            t_interval(values) if all(map(math.isfinite, values)) else IntervalEstimate(math.inf, math.nan, math.nan, 0)
        )

    return {method: regret(name) for method, name in line["chosen"].items()}


def regret_rows(lines: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """A row for each setting, one for the means over those in which every method chose what trains, and one for the
    others."""
    rows: list[list[str]] = []
    every = [regrets(line) for line in lines]
    whole = [found for found in every if all((one := found.get(method)) and math.isfinite(one.value)
             for method in METHODS)]  # fmt: skip
    for line, found in zip(lines, every, strict=True):
        cells = []
        for method in METHODS:
            one = found.get(method)
            cells.append(f"{line['chosen'][method]}: {text_of(one)}" if one else "refused" if line["refused"] else NONE)
        step = line["step"].get(line["chosen"].get(ADVISE) or "", math.nan)
        rows.append([f"{line['layer'].rpartition('/')[2]}, {line['depth']} × {line['width']}", *cells, three(step)])
    values = {method: [found[method].value for found in whole] for method in METHODS}  # type: ignore[union-attr]
    means = [text_of(t_interval(values[method])) if whole else NONE for method in METHODS]
    misses = [sum(not (one := found.get(method)) or math.isinf(one.value) for found in every) for method in METHODS]
    return [
        *rows,
        [f"mean of {len(whole)}", *means, ""],
        ["no choice, or one that diverges", *map(str, misses), ""],
    ]


def text_of(one: IntervalEstimate) -> str:
    return "diverges" if math.isinf(one.value) else f"{three(one.value)} {between(one.low, one.high)}"


def is_right(line: Mapping[str, Any]) -> bool:
    """Whether an advice holds the best connection, or prefers neither of two copies."""
    if line["kind"] == "known":
        return line["best"] in line["use"]
    return len({block for block, _ in line["use"]}) != 1


def judge(file: Path) -> list[str]:
    """How often the advices in ``file`` are right, by kind, rules and family, and in all, as a table in Markdown."""
    lines = collected(file)
    regret = [line for line in lines if line["kind"] == "regret"]
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
    every = markdown_table(HEADS, rows)
    if not regret:
        return every
    return [*markdown_table(("setting", *METHODS, "step ÷ pre-norm's"), regret_rows(regret)), "", *every]


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
    parser.add_argument("--kind", choices=("regret", "copies"), default="regret")
    parser.add_argument("--file", type=Path, default=LINES)
    parser.add_argument("--out", type=Path, default=Path("reports/advice-proof"))
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    if given.command == "judge":
        sys.stdout.write("\n".join([*judge(given.file), ""]))
        return

    def make(layer: str, **words: Any) -> Advice:
        return advise(layer, minutes=given.minutes, out=given.out, progress=True, **words)

    try:
        with showing_progress() as on_event:
            trainer = Trainer(given.out / "truth.sqlite", workers=given.workers, on_event=on_event)
            load_plugins([str(COPY)])
            lines: dict[str, tuple[Iterable[int], Callable[[int], dict[str, Any]]]] = {
                "regret": (range(len(SETTINGS)), lambda number: regret_line(number, make, trainer, given.minutes)),
                "copies": (REPETITIONS, lambda number: copies_line(number, make)),
            }
            refused = collect(given.kind, lines[given.kind][0], given.file, lines[given.kind][1])
    except HighwayBenchError as error:
        parser.exit(error.exit_status, f"{error}\n")
    parser.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
