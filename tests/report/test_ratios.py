"""No sentence, title or table quotes a ratio without its interval, and a wide interval is called undecided."""

from __future__ import annotations

import io
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from highway_bench.report import Results, print_summary, write_report
from highway_bench.report.figures.quality import quality_against_cost
from highway_bench.report.figures.step_time import step_time_ratio
from highway_bench.report.further_values import all_results
from highway_bench.report.ratio import NOT_PAIRED, TOO_FEW, UNDECIDED, geometric_mean, is_decided, quoted
from highway_bench.report.summary_tables import summary_tables
from highway_bench.results.schema import Row

Make = dict[str, Callable[..., Any]]
TIMES = 1.77
"""How many times plain's step the other block takes: a number that nothing else on the page has."""
NUMBER = re.compile(r"(?<![\d.,])1[.,]7[67]\d*")
NAKED = re.compile(r"\d[\d.,]*\s?(?:×|times)")
"""A number of times, which no part of a report prints: exact counts are called exact."""


def samples(scale: float, spread: float, seed: int, n: int = 25) -> list[float]:
    draw = random.Random(seed)
    return [scale * draw.lognormvariate(0, spread) for _ in range(n)]


def timed(make: Make, spread: float, *, families: tuple[str, ...] = ("dense",), n: int = 25, **apart: Any) -> list[Row]:
    """Plain and highway in each family, whose pairs' ratios scatter by ``spread``; ``apart`` sets them apart."""
    rows = []
    for family in families:
        for turn, (block, scale) in enumerate((("plain", 4.1e-4), ("highway", 4.1e-4 * TIMES))):
            base = make["cell"]("throughput", block, family, 10, phase="forward", **(apart if turn else {}))
            rows += make["timing"](base, samples(scale, spread, turn, n))
    return rows


def trained(make: Make) -> list[Row]:
    """Both blocks at depth 10, highway's training steps as many times longer."""
    rows = []
    for block, loss, step in (("plain", 0.2, 2.3e-3), ("highway", 0.05, 2.3e-3 * TIMES)):
        for seed in range(5):
            base = make["cell"]("trainability", block, "dense", 10, dataset="digits", recipe=make["ladder"], seed=seed)
            rows += make["training"](base, loss, rate=0.1, step_seconds=step)
    return rows


def rendered(frame: pd.DataFrame, folder: Path) -> dict[str, str]:
    """What a reader sees of ``frame``: the page's text, titles and descriptions of figures too, and the terminal's."""
    page = write_report(frame, folder).page.read_text(encoding="utf-8")
    page = re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>|<path[^>]*>|<[^>]+>", " ", page)
    out = io.StringIO()
    print_summary(frame, Console(file=out, width=1000))
    return {"page": page, "terminal": out.getvalue()}


CASES = {
    "narrow": ({"spread": 0.005}, True, r"1\.7[67] \[1\.7"),
    "wide": ({"spread": 0.6}, False, r"undecided \[[01]\.\d+, \d\.\d+\]"),
    "unpaired": ({"spread": 0.005, "message": "unpaired: the group's worker died"}, False, NOT_PAIRED),
    "another run": ({"spread": 0.005, "run_id": "run-2"}, False, NOT_PAIRED),
    "one sample": ({"spread": 0.005, "n": 1}, False, TOO_FEW),
    "several families": ({"spread": 0.005, "families": ("dense", "conv", "mlp")}, True, r"1\.7[67] \[1\.7"),
}


@pytest.mark.parametrize("also_trained", [False, True], ids=["timed", "trained"])
@pytest.mark.parametrize("case", CASES)
def test_a_ratio_stands_with_its_interval_or_not_at_all(
    case: str, also_trained: bool, make: Make, tmp_path: Path
) -> None:
    words, decided, says = CASES[case]
    rows = timed(make, **words) + (trained(make) if also_trained else [])
    for block, size in (("plain", 100.0), ("highway", 150.0)):
        rows += make["memory"](make["cell"]("memory", block, "dense", 10), size)
    for where, text in rendered(make["frame"](rows), tmp_path).items():
        assert not NAKED.search(text), f"{where}: {text[max(0, NAKED.search(text).start() - 80) :][:160]}"
        for match in NUMBER.finditer(text):
            assert text[match.end() :].startswith((" [", ", 1.", "]")), f"{where}: {text[match.start() - 80 :][:160]}"
        assert bool(NUMBER.search(text)) == decided, where
        assert re.search(says, text), where


def test_training_alone_gives_no_ratio_of_steps(make: Make, tmp_path: Path) -> None:
    """Training runs take their steps apart, at whatever load of the machine."""
    for text in rendered(make["frame"](trained(make)), tmp_path).values():
        assert not NAKED.search(text)
        assert not NUMBER.search(text)
        assert "not timed" in text


def test_titles_and_sentences_name_what_is_undecided(make: Make) -> None:
    frame = make["frame"](timed(make, 0.6))
    (picture,) = step_time_ratio(Results(frame))
    assert re.fullmatch(r"highway's step ÷ plain's: undecided \[.+, .+\]", picture.title)
    (sentence,) = Results(frame).answer()
    assert "highway undecided [" in sentence.rest
    (picture,) = quality_against_cost(Results(make["frame"](trained(make))))
    assert picture.title == (
        "dense: at depth 10 highway has the lowest loss, 0.0500, after 2.04 s of training; "
        "plain has the shortest training, 1.15 s"
    )


def test_the_margin_of_a_loss_is_both_losses_with_their_intervals(make: Make) -> None:
    rest = Results(make["frame"](trained(make))).answer()[0].rest
    assert "highway has the lowest final loss, 0.0500 [0.0500, 0.0500] against plain's 0.200 [0.200, 0.200]" in rest


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.50, 1.58, "1.54 [1.50, 1.58]"),
        (1.41, 1.69, "1.54 [1.41, 1.69]"),  # within 10 % of the value both ways
        (1.39, 1.58, "undecided [1.39, 1.58]"),
        (1.50, 1.70, "undecided [1.50, 1.70]"),
        (math.nan, math.nan, "too few samples"),
    ],
)
def test_one_rule_decides(low: float, high: float, text: str) -> None:
    assert quoted(1.54, low, high, TOO_FEW) == text
    assert quoted(1 / 1.54, 1 / high, 1 / low, TOO_FEW).startswith("undecided") == text.startswith("undecided")


def test_the_rule_is_the_same_both_ways_round() -> None:
    edge = 1 + UNDECIDED
    assert is_decided(2.0, 2.0 / edge * 1.0001, 2.0 * edge / 1.0001)
    assert not is_decided(2.0, 2.0 / edge / 1.0001, 2.0)
    assert not is_decided(2.0, 2.0, 2.0 * edge * 1.0001)
    assert not is_decided(2.0, math.nan, math.nan)


def test_a_ratio_of_one_to_itself_is_exact() -> None:
    assert quoted(1.0, 1.0, 1.0) == "1"
    assert quoted(2.0, 2.0, 2.0) == "2.00 [2.00, 2.00]"


def test_a_mean_over_places_has_the_mean_of_their_ends() -> None:
    assert geometric_mean([(1.0, 0.5, 2.0), (4.0, 2.0, 8.0)]) == pytest.approx((2.0, 1.0, 4.0))


@pytest.mark.parametrize(
    ("apart", "gap"),
    [
        ({"message": "unpaired: the group's worker died; cut short"}, f"{NOT_PAIRED}: the group's worker died"),
        ({"run_id": "run-2"}, NOT_PAIRED),
        ({"n": 1}, TOO_FEW),
        ({"threads": 2}, "plain not timed"),
    ],
)
def test_why_there_is_no_ratio_is_printed_in_its_column(apart: dict[str, Any], gap: str, make: Make) -> None:
    table = Results(make["frame"](timed(make, 0.005, **apart))).step_times()
    (highway,) = table[table["block"] == "highway"].to_dict("records")
    assert math.isnan(highway["ratio"])
    assert highway["ratio_gap"] == gap
    assert list(table.loc[table["block"] == "plain", "ratio_gap"]) == [""]


def test_plain_may_be_what_was_not_paired(make: Make) -> None:
    rows = timed(make, 0.005)
    rows = [row | {"message": "unpaired: its worker died"} if row["block"] == "plain" else row for row in rows]
    table = Results(make["frame"](rows)).step_times()
    assert list(table.loc[table["block"] == "highway", "ratio_gap"]) == [f"{NOT_PAIRED}: plain: its worker died"]


def test_measuring_again_is_no_advice_where_the_cell_says_why_it_was_not_paired(make: Make) -> None:
    for apart, advised in (({"message": "unpaired: its worker died"}, False), ({"run_id": "run-2"}, True)):
        (table,) = (
            one for one in all_results(Results(make["frame"](timed(make, 0.005, **apart)))) if one.name == "throughput"
        )
        assert ("--fresh" in table.note) == advised
        assert ("reason after the colon" in table.note) != advised


def twice(make: Make, **second: Any) -> pd.DataFrame:
    """Plain and highway timed under two recipes, the second time with ``second``; both undecided, apart."""
    rows = []
    for turn, (seconds, n) in enumerate(((0.2, 25), (0.3, 41))):
        for block, scale in (("plain", 1.0), ("highway", TIMES)):
            base = make["cell"]("throughput", block, "dense", 10, phase="forward", recipe={"seconds": seconds})
            seed = 2 * turn + (block == "plain")
            rows += make["timing"](base | (second if turn else {}), samples(scale, 0.6, seed, n))
    return make["frame"](rows)


@pytest.mark.parametrize(
    ("second", "quoted_one"), [({}, 1), ({"message": "unpaired: its worker died"}, 0)], ids=["more samples", "unpaired"]
)
def test_of_cells_that_were_timed_twice_one_is_quoted_everywhere(
    second: dict[str, Any], quoted_one: int, make: Make
) -> None:
    frame = twice(make, **second)
    both = Results(frame).step_times()
    both = both[both["block"] == "highway"]
    assert len(both) == 2
    wanted = both.iloc[quoted_one]
    text = quoted(wanted["ratio"], wanted["ratio_low"], wanted["ratio_high"])
    assert text.startswith("undecided [")
    (sentence,) = Results(frame).answer()
    assert f"highway {text}" in sentence.rest
    (table,) = summary_tables(Results(frame))
    at = [head.text for head in table.heads].index("step ÷ plain's")
    assert [row[at].text for row in table.entries] == ["1", text]
    (picture,) = step_time_ratio(Results(frame))
    assert picture.title == f"highway's step ÷ plain's: {text}"


def test_what_to_do_is_said_once_below_the_table(make: Make) -> None:
    for spread, apart, what in ((0.005, {"run_id": "run-2"}, "in one run"), (0.6, {}, "more than 10 %")):
        rows = make["frame"](timed(make, spread, **apart))
        (table,) = (table for table in all_results(Results(rows)) if table.name == "throughput")
        assert table.note.count(what) == 1
