"""Tables as LaTeX: every table, its numbers and its notes, in characters that every engine has."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from highway_bench.errors import BadInput
from highway_bench.frames.results import Results
from highway_bench.report.columns import Heading, TextTable
from highway_bench.report.latex import latex, write_latex

SHOWN = TextTable(
    "small_one",
    "50 % of a_b",
    (Heading("block", number=False), Heading("loss"), Heading("remark", number=False)),
    (("highway & $x$ {y}", "−0.5", "~^\\#" + "x" * 40), ("plain", "≥ 10 ×", "> 5 | < 9")),
    "Brackets\nare 95 % intervals.",
)


def test_a_table() -> None:
    text = latex(SHOWN)
    assert r"\begin{tabular}{lrp{0.2\linewidth}}" in text
    assert all(rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    assert r"\caption{50 \% of a\_b. Brackets are 95 \% intervals.}" in text
    assert r"\label{tab:small_one}" in text
    assert r"highway \& \$x\$ \{y\} & $-$0.5 & \textasciitilde{}\textasciicircum{}\textbackslash{}\#" in text
    assert r"plain & $\geq$ 10 $\times$ & $>$ 5 $|$ $<$ 9 \\" in text
    assert text.isascii()


@pytest.fixture(scope="module")
def tables(standard: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_latex(Results(standard), tmp_path_factory.mktemp("latex") / "tables")


def test_every_character_is_one_that_latex_has(tables: list[Path]) -> None:
    others = {character for path in tables for character in path.read_text(encoding="utf-8") if not character.isascii()}
    assert others == set()


def test_a_folder_that_cannot_be_written(standard: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"cannot write .*file: "):
        write_latex(Results(standard), tmp_path / "file")
