"""What is printed: numbers as text, the summary in a terminal, and tables as LaTeX."""

import io
import math

import pytest
from rich.console import Console

from highway_bench.errors import BadInput
from highway_bench.frames.results import Results
from highway_bench.report.columns import Heading, TextTable
from highway_bench.report.console import BRIEF, BRIEF_WIDTH, brief, summary
from highway_bench.report.format import between, count, listed, quantity, signed, three
from highway_bench.report.latex import latex, write_latex
from highway_bench.terminal import print_part
from tests.rows import cell, frame_of, memory


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.8349, "1.83"), (12345, "12,300"), (0.0012345, "0.00123"), (9.999, "10.0"), (0, "0"), (-2.5, "−2.50"),
     (1e9, "1.00e+09"), (-1e-7, "−1.00e-07"), (math.inf, "∞"), (math.nan, "–"), (None, "–")],
)  # fmt: skip
def test_three_significant_digits(value, text):
    assert three(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.003214, "s", "3.21 ms"), (4.5e-7, "s", "450 ns"), (1234.0, "s", "1,230 s"), (1.02e6, "B", "1.02 MB"),
     (12.3e3, "sample/s", "12.3 ksample/s"), (0.31, "1", "0.310"), (3, "B", "3.00 B"), (0, "B", "0 B"),
     (0.9999, "s", "1.00 s"), (999.9e3, "B", "1.00 MB")],
)  # fmt: skip
def test_a_quantity_has_the_prefix_that_suits_it(value, unit, text):
    assert quantity(value, unit) == text


def test_intervals_counts_and_lists():
    assert (signed(-2.0), signed(0.5), signed(-0.126, "+.2f")) == ("−2", "0.5", "−0.13")
    assert between(1.8, 1.864) == "[1.80, 1.86]"
    assert between(math.nan, 1.0) == ""
    assert count(85660.0) == "85,660"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"


def printed(parts, width=160):
    out = io.StringIO()
    for part in parts:
        print_part(part, Console(file=out, width=width))
    return out.getvalue()


def test_the_summary_has_the_answer_a_row_a_block_and_the_failures(standard):
    text = printed(summary(Results(standard)))
    assert "Which connection to take" in text
    assert "highway-free" in text
    assert "stopped after 300 s" in text
    assert max(len(line) for line in text.splitlines()) <= 160


def test_a_brief_summary_counts_what_it_leaves_out(standard):
    results = Results(standard)
    *lines, more = brief(results, 200)
    whole = printed(summary(results, narrow=True), BRIEF_WIDTH).strip("\n").splitlines()
    assert (len(lines), str(len(whole) - len(lines)) in more) == (BRIEF - 1, True)
    assert [line.rstrip() for line in lines] == [line[:BRIEF_WIDTH].rstrip() for line in whole[: BRIEF - 1]]


def test_brackets_in_names_are_no_markup():
    rows = memory(cell("memory", "[red]x[/red]", "dense", 4), 10.0)
    assert "[red]x[/red]" in printed(summary(Results(frame_of(rows))))


SHOWN = TextTable(
    "small_one",
    "50 % of a_b",
    (Heading("block", number=False), Heading("loss"), Heading("remark", number=False)),
    (("highway & $x$ {y}", "−0.5", "~^\\#" + "x" * 40), ("plain", "≥ 10 ×", "> 5 | < 9")),
    "Brackets\nare 95 % intervals.",
)


def test_a_table():
    text = latex(SHOWN)
    assert r"\begin{tabular}{lrp{0.2\linewidth}}" in text
    assert all(rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    assert r"\caption{50 \% of a\_b. Brackets are 95 \% intervals.}" in text
    assert r"\label{tab:small_one}" in text
    assert r"highway \& \$x\$ \{y\} & $-$0.5 & \textasciitilde{}\textasciicircum{}\textbackslash{}\#" in text
    assert r"plain & $\geq$ 10 $\times$ & $>$ 5 $|$ $<$ 9 \\" in text
    assert text.isascii()


def test_every_character_is_one_that_latex_has(standard, tmp_path):
    written = write_latex(Results(standard), tmp_path / "tables")
    assert written
    assert all(path.read_text(encoding="utf-8").isascii() for path in written)


def test_a_folder_that_cannot_be_written(standard, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"cannot write .*file: "):
        write_latex(Results(standard), tmp_path / "file")
