"""The answer for print: a table with one row per family and depth, and what a reader must know of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import pandas as pd

from highway_bench.measure.statistics import wilson
from highway_bench.report import columns as column
from highway_bench.report.columns import Column, Record, Shown
from highway_bench.report.format import counted, first_of, listed, quantity, three
from highway_bench.report.glossary import STARTS, start_text
from highway_bench.report.labels import data_name, step_text, title_of
from highway_bench.report.ratio import quoted
from highway_bench.report.results import Results
from highway_bench.report.rows import DEFAULT, STARTED, block_label, groups, rows_of, start_of, without_start
from highway_bench.report.summary_tables import ratio_heading, size_notes
from highway_bench.report.tables.answer import AHEAD, MOST_NAMED, NOT_MEASURED, TIED, TIES, Answer, Successes
from highway_bench.report.tables.costs import COST
from highway_bench.report.tables.trainability import surely_fails
from highway_bench.success.ladder import FULL_SEEDS, LEAST_SEEDS, TRAINABLE, TRAINS

EDGE: Final = "†"
APART: Final = "their shares of seeds differ significantly (Fisher's exact test, 5 %)"
OF_START: Final = f"These train with one start but not with another, at the depths in brackets; {APART}."
OF_FAMILY: Final = f"These train in one family but not in another, at the depths in brackets; {APART}."
BARE: Final = "y = x + H(x)"
"""The equation of the residual connection without norm, gate or scale."""


def answer_table(results: Results) -> Shown:
    """One row per answer of ``results``, with a note of several lines."""
    answers = results.answer()
    measured = [answer for answer in answers if answer.verdict != NOT_MEASURED]
    title = f"Which connection to use: {len(measured)} of {counted(len(answers), 'row')} measured"
    depths = [", ".join(map(str, answer.depths)) for answer in answers]
    table = pd.DataFrame({"answer": answers, "depth": depths})
    note = "\n".join(_notes(results))
    return column.shown("answer-table", title, table, _columns(results.phase()), note=note)


def _notes(results: Results) -> list[str]:
    """Sentences on the answers: seeds, starts that change a verdict, sizes of timed networks, rates at an edge."""
    answers = results.answer()
    seeds = min((int(part["n"].min()) for _, part in results.contests()), default=FULL_SEEDS)
    notes = [
        "Brackets are 95 % intervals. Those of differences of losses are wider, by Holm's correction for all "
        "comparisons of a row: where such an interval excludes 0, the difference is significant at 5 %."
    ]
    notes[0] += f" Steps are {step_text(results.phase())}s." if results.phase() else ""
    if results.contests():
        notes[0] += (
            " A run succeeds if its final training loss is at most the threshold, and a connection trains if "
            f"{100 * TRAINABLE:g} % of its runs succeed."
        )
    if seeds < FULL_SEEDS:
        low = wilson(LEAST_SEEDS, LEAST_SEEDS).low
        notes[0] += (
            f" Verdicts from fewer than {FULL_SEEDS} seeds are provisional: if {LEAST_SEEDS} of {LEAST_SEEDS} seeds "
            f"succeed, the share may be as low as {100 * low:.0f} %."
        )
    if any(answer.verdict == TIED for answer in answers):
        notes.append(
            "Tied: these seeds do not separate the connections, which need not be equal. Losses are compared with the "
            "lowest one seed by seed, and the interval of the difference includes 0. A connection whose loss varies "
            "much between seeds can be tied although another one with a lower mean loss is not. The first named has "
            "the lowest loss. The number of seeds that would decide has a power of 80 % for the difference that was "
            "measured, which a few seeds give only roughly."
        )
    blocks = dict.fromkeys(without_start(block) for answer in answers for block in _avoided(answer))
    notes += [
        f"{block} is the bare sum {BARE}, without norm, gate or learned scale. In dense and conv, H(x) ≥ 0 "
        "with a ReLU, which comes last."
        for block in blocks
        if results.about.blocks.get(block.partition(" ")[0], {}).get("equation") == BARE
    ]
    notes += _starts(results)
    starts = dict.fromkeys(start_of(block) for answer in answers for block in (*answer.use, *_avoided(answer)))
    notes += [f"Start {start}: {STARTS[start]}" for start in starts if start != DEFAULT and start in STARTS]
    notes += [*_dependent(results), *_again(results)]
    costs = [
        {**cost, "family": answer.family.partition(" ")[0]} for answer in answers if answer.use for cost in answer.costs
    ]
    notes += size_notes(pd.DataFrame(costs, columns=[*COST, "family"]), results.phase())
    if any(cost["bytes_per_layer"] > 0 for cost in costs):
        notes[-1] += " Bytes are the activations of a layer that are saved for the backward pass."
    edges = _edges(answers)
    return notes + (
        [f"{EDGE} Of those named here, best rate at an edge of those tried, so a better one may lie outside: {edges}."]
        if edges
        else []
    )


def _dependent(results: Results) -> list[str]:
    """The connections that train with one start or family and not with another, with depths: a sentence for each kind
    of difference."""
    conflicts = results.conflicting_verdicts()
    machines: dict[tuple[str, str], set[str]] = {}
    for one in conflicts:
        machines.setdefault((one.trains, one.stalls), set()).add(one.machine)
    depths: dict[str, dict[str, dict[str, set[int]]]] = {}
    for one in conflicts:
        family, other = (network.partition(STARTED)[0] for network in (one.trains, one.stalls))
        start, block = start_of(one.trains), one.block
        if family == other:
            kind, where = OF_START, f"{family}, {start} but not {start_of(one.stalls)}"
        else:
            kind, where, block = OF_FAMILY, f"{family} but not {other}", block_label(block, None, start)
        where += f", on {one.machine}" if len(machines[one.trains, one.stalls]) > 1 else ""
        depths.setdefault(kind, {}).setdefault(where, {}).setdefault(block, set()).update(one.depths)
    return [
        f"{sentence} "
        + "; ".join(
            f"{where}: "
            + listed([f"{block} ({listed([str(depth) for depth in sorted(at)])})" for block, at in own.items()])
            for where, own in networks.items()
        )
        + "."
        for sentence, networks in depths.items()
    ]


def _again(results: Results) -> list[str]:
    """The connections that surely fail at one depth and train at a greater one, in one sentence."""
    contests = [contest for contest, _ in results.contests()]
    found = []
    for contest, part in results.contests():
        texts = []
        for key, own in groups(part.sort_values("depth"), ["block"]):
            failed = [cell["depth"] for cell in rows_of(own) if surely_fails(cell)]
            trained = own.loc[own["verdict"].eq(TRAINS) & own["depth"].gt(min(failed, default=math.inf)), "depth"]
            if len(trained):
                at, later = (listed([str(int(depth)) for depth in depths]) for depths in (failed, trained))
                texts.append(f"{key['block']} (fails at {at}, trains at {later})")
        if texts:
            found.append(f"{title_of(contest, contests, data_name)}: {listed(texts)}")
    return [f"One that fails at a depth may train at a greater one. {'; '.join(found)}."] if found else []


def _starts(results: Results) -> list[str]:
    """How each connection begins, if all have one start; where there are several, the labels name them."""
    trained = results.of_task("trainability")
    used = trained[trained["start"].notna()]
    starts = set(used["start"])
    if len(starts) != 1:
        return []
    (start,) = starts
    begins = {
        key["label"]: start_text(key["label"], start, results.about.blocks, part["family"])
        for key, part in groups(used, ["label"])
    }
    named = [f"{label}: {text}" for label, text in begins.items() if text]
    return [f"All connections have the {start} start ({'; '.join(named)})."] if named else []


def _columns(phase: str) -> list[Column]:
    return [
        _text("family", lambda answer: answer.family),
        column.words("depth", "depth"),
        _text("use", _use, "of those that train, the one of the lowest final training loss, and those tied with it"),
        _text("avoid", _avoid, "those that do not train; perhaps: Wilson's interval of the share reaches 90 %"),
        _text(
            "not tried here",
            lambda answer: ", ".join(first_of(answer.failed_before, MOST_NAMED)),
            "failed at the last depth at which it was tried",
        ),
        _text("how sure", _sure, "difference of final training losses, with the interval of the comparison"),
        _text("learning rate", _rate, "the best of those tried, with the optimiser"),
        _text("test accuracy", _accuracy, "mean over seeds; of many that are tied, of the one that is named"),
        _cost(ratio_heading(phase)),
        _text("bytes per layer (÷ plain's)", _bytes, "activations saved for the backward pass, counted exactly"),
    ]


def _text(heading: str, make: Callable[[Answer], str], hint: str = "") -> Column:
    return column.computed(heading, lambda record: make(record["answer"]), hint, is_number=False)


def _use(answer: Answer) -> str:
    names = _marked(answer, answer.use)
    if len(names) > TIES:
        return f"{names[0]}, the lowest loss of {len(names)} tied"
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else "".join(names) or answer.verdict


def _avoid(answer: Answer) -> str:
    perhaps = [f"perhaps {text}" for text in _by_count(answer, answer.unsure)]
    avoided = [*_by_count(answer, answer.avoid), *perhaps]
    return "; ".join(avoided) or ("none of those judged" if answer.use else "")


def _by_count(answer: Answer, every: Iterable[Successes]) -> list[str]:
    """The blocks of each number of successes, and of diverged runs."""
    by_count: dict[tuple[str, str], list[str]] = {}
    for block, k, n, diverged, rate in every:
        ended = f", {diverged} diverged at rate {rate:g}" if diverged else ""
        by_count.setdefault((f"{k} of {n}", ended), []).append(block)
    texts = []
    for (count, ended), blocks in by_count.items():
        each = f"({count}{' each' * (len(blocks) > 1)}{ended})".replace(" ", "\N{NO-BREAK SPACE}")
        texts.append(f"{', '.join(first_of(_marked(answer, blocks), MOST_NAMED))} {each}")
    return texts


def _avoided(answer: Answer) -> list[str]:
    return [one.block for one in (*answer.avoid, *answer.unsure)]


def _marked(answer: Answer, blocks: Iterable[str]) -> list[str]:
    return [f"{block}\N{NO-BREAK SPACE}{EDGE}" if block in answer.edges else block for block in blocks]


def _sure(answer: Answer) -> str:
    if not answer.use:
        return answer.reason
    below = ""
    if answer.margin is not None and math.isnan(answer.margin.low):
        below = f"{answer.best} and {answer.margin.block}, "
    elif answer.margin is not None:
        ratios = answer.margin.ratio, answer.margin.high, answer.margin.low
        value, low, high = (three(100 * (1 - ratio)) for ratio in ratios)
        best = f"{answer.best}'s " if answer.verdict == TIED else ""
        (other,) = _marked(answer, [answer.margin.block])
        below = f"{best}loss {value} % [{low}, {high}] below that of {other}, "
    verdict = f"{answer.verdict} of those judged" if answer.not_judged and answer.verdict == AHEAD else answer.verdict
    return f"{verdict}: {below}{answer.reason}"


def _of_each(answer: Answer, texts: Mapping[str, str]) -> str:
    """The text of every connection of ``use``, once if they are equal; of many, that of the one that is named."""
    known = {block: texts[block] for block in answer.use if block in texts}
    if len(answer.use) > TIES:
        return known.get(answer.best, "")
    if len(known) == len(answer.use) and len(set(known.values())) == 1:
        return next(iter(known.values())) + " each" * (len(known) > 1)
    return "; ".join(f"{block} {text}" for block, text in known.items())


def _rate(answer: Answer) -> str:
    return _of_each(answer, {block: f"{rate:g}, {answer.optimiser}" for block, rate in answer.rates.items()})


def _accuracy(answer: Answer) -> str:
    bits = {block: f", {three(value)} bits per byte" for block, value in answer.bits.items()}
    texts = {block: f"{three(100 * value)} %{bits.get(block, '')}" for block, value in answer.accuracies.items()}
    return _of_each(answer, texts)


def _cost(heading: str) -> Column:
    def make(record: Record) -> str:
        answer: Answer = record["answer"]
        texts = {
            cost["block"]: quoted(cost["ratio"], cost["ratio_low"], cost["ratio_high"], cost["ratio_gap"])
            for cost in answer.costs
        }
        if answer.use:
            text = _of_each(answer, texts)
            if len(answer.use) > TIES and answer.cheapest not in ("", answer.best):
                text += f"; the lowest of the {len(answer.use)}: {answer.cheapest} {texts[answer.cheapest]}"
        else:  # only costs are known: the range
            known = [cost["block"] for cost in answer.costs if not math.isnan(cost["ratio"])]
            ends = dict.fromkeys([*known[:1], *known[-1:]])
            text = " to ".join(f"{block} {texts[block]}" for block in ends) or next(iter(texts.values()), "")
        at = f"depth {answer.cost_depth}: " if text and answer.depths != (answer.cost_depth,) else ""
        return at + text

    return column.Head(heading, "step time over plain's, 95 % interval over processes", number=False, ratio=True), make


def _bytes(answer: Answer) -> str:
    texts = {}
    for cost in answer.costs:
        if cost["bytes_per_layer"] > 0:
            ratio = "" if math.isnan(cost["bytes_ratio"]) else f" ({three(cost['bytes_ratio'])})"
            texts[cost["block"]] = quantity(cost["bytes_per_layer"], "B") + ratio
    return _of_each(answer, texts)


def _edges(answers: list[Answer]) -> str:
    """The blocks whose best rate is at an edge, with the depths and the rates."""
    by_family: dict[str, dict[str, list[str]]] = {}
    for answer in answers:
        compared = [answer.margin.block] if answer.margin is not None else []
        for block in dict.fromkeys([*answer.use, *compared, *_avoided(answer)]):
            if rate := answer.edges.get(block):
                rates = by_family.setdefault(answer.family, {})
                rates.setdefault(f"{block} ({rate})", []).append(str(answer.depths[0]))
    return "; ".join(
        f"{family}: " + ", ".join(f"{block} at depth {listed(depths)}" for block, depths in blocks.items())
        for family, blocks in by_family.items()
    )
