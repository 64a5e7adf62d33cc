"""No sentence, title or table quotes a ratio without its interval, and a wide interval is called undecided."""

import io
import math
import random
import re

import pytest
from rich.console import Console

from highway_bench.frames.results import Results
from highway_bench.report.columns import OLDER, ONE_PROCESS, is_decided, quoted
from highway_bench.report.console import summary
from highway_bench.report.page import write_report
from highway_bench.terminal import print_part
from tests.rows import cell, frame_of, memory, timing, trained

TIMES = 1.77
"""How many times plain's step the other block takes: a number that nothing else on the page has."""
NUMBER = re.compile(r"(?<![\d.,])1[.,]7[67]\d*")
NAKED = re.compile(r"\d[\d.,]*\s?(?:×|times)")
"""A number of times, which no part of a report prints: exact counts are called exact."""


def samples(scale, spread, seed, n=25):
    draw = random.Random(seed)
    return [scale * draw.lognormvariate(0, spread) for _ in range(n)]


def timed(spread, *, families=("dense",), processes=4):
    """Plain and highway in each family, whose pairs' ratios scatter by ``spread``."""
    rows = []
    for family in families:
        plain = samples(4.1e-4, spread, 0)
        for turn, (block, scale) in enumerate((("plain", 4.1e-4), ("highway", 4.1e-4 * TIMES))):
            base = cell("throughput", block, family, 10, phase="forward")
            rows += timing(base, samples(scale, spread, turn), plain, processes)
    return rows


def without_ratio(rows):
    """``rows`` as version 0.1 stored them."""
    later = ("plain_ratio", "yardstick_ratio", "waited", "disturbed")
    return [row | {"paired": None} for row in rows if row["metric"] not in later]


TRAINED = trained({("plain", 10): [0.2] * 5}, step_seconds=2.3e-3)
TRAINED += trained({("highway", 10): [0.05] * 5}, step_seconds=2.3e-3 * TIMES)
"""Both blocks at depth 10, highway's training steps as many times longer."""


def rendered(frame, folder):
    """What a reader sees of ``frame``: the page's text, titles and descriptions of figures too, and the terminal's."""
    page = write_report(frame, folder).page.read_text(encoding="utf-8")
    page = re.sub(r"(?s)<style>.*?</style>|<script.*?</script>|<path[^>]*>|<[^>]+>", " ", page)
    out = io.StringIO()
    for part in summary(Results(frame)):
        print_part(part, Console(file=out, width=1000))
    return {"page": " ".join(page.split()), "terminal": out.getvalue()}


CASES = {
    "narrow": ({"spread": 0.005}, True, r"1\.7[67] \[1\.7"),
    "wide": ({"spread": 0.6}, False, r"undecided \[[01]\.\d+, \d\.\d+\]"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_ratio_stands_with_its_interval_or_not_at_all(case, tmp_path):
    words, decided, says = CASES[case]
    rows = timed(**words) + TRAINED
    for block, size in (("plain", 100.0), ("highway", 150.0)):
        rows += memory(cell("memory", block, "dense", 10), size)
    for where, text in rendered(frame_of(rows), tmp_path).items():
        assert not NAKED.search(text), f"{where}: {text[max(0, NAKED.search(text).start() - 80) :][:160]}"
        for match in NUMBER.finditer(text):
            assert text[match.end() :].startswith((" [", ", 1.", "]")), f"{where}: {text[match.start() - 80 :][:160]}"
        assert bool(NUMBER.search(text)) == decided, where
        assert re.search(says, text), where


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (1.54, 1.50, 1.58, "1.54 [1.50, 1.58]"),
        (1.54, 1.41, 1.69, "1.54 [1.41, 1.69]"),  # within 10 % of the value both ways
        (1.54, 1.39, 1.58, "undecided [1.39, 1.58]"),
        (1.54, 1.50, 1.70, "undecided [1.50, 1.70]"),
        (2.0, 2.0, 2.0, "2.00 [2.00, 2.00]"),
        (1.54, math.nan, math.nan, ONE_PROCESS),
        (1.0, 0.99, 1.01, "1"),  # of plain to itself
    ],
)
def test_one_rule_decides_and_is_the_same_both_ways_round(value, low, high, text):
    assert quoted(value, low, high, ONE_PROCESS) == text
    for one in ((value, low, high), (1 / value, 1 / high, 1 / low)):
        assert is_decided(*one) == (not text.startswith("undecided") and text != ONE_PROCESS)


def test_why_there_is_no_ratio_is_printed_in_its_column():
    for rows, gap in (
        (timed(0.005, processes=1), ONE_PROCESS),
        (without_ratio(timed(0.005)), OLDER),
    ):
        table = Results(frame_of(rows)).step_times()
        assert set(table.loc[table["block"] == "highway", "ratio_gap"]) == {gap}
        assert table["ratio_low"].isna().all()


def test_of_cells_that_were_timed_twice_the_one_with_more_samples_is_quoted():
    rows = []
    for turn, (seconds, n) in enumerate(((0.2, 41), (0.3, 25))):
        plain = samples(1.0, 0.6, turn, n)
        for scale, block in ((1.0, "plain"), (TIMES, "highway")):
            base = cell("throughput", block, "dense", 10, phase="forward", recipe={"seconds": seconds})
            rows += timing(base, [scale * one for one in plain], plain)
    results = Results(frame_of(rows))
    assert sorted(results.step_times().query("block == 'highway'")["n"]) == [25, 41]
    assert list(results.ratios().query("block == 'highway'")["n"]) == [41]
