"""Tables as LaTeX for papers, in the style of booktabs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pandas as pd

from highway_bench.errors import writing
from highway_bench.frames.results import Results
from highway_bench.report.choice.lines import taken
from highway_bench.report.choice.table import wide_table
from highway_bench.report.columns import Heading, TextTable
from highway_bench.report.task_tables import depth_table, task_tables

LONG: Final = 32
"""A column of text with a longer entry is broken into lines, in a column of a fixed width."""

WRITTEN: Final = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\N{NO-BREAK SPACE}": "~",
        "−": "$-$",
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
        "×": r"$\times$",
        "÷": r"$\div$",
        "·": r"$\cdot$",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "√": r"$\surd$",
        "∞": r"$\infty$",
        "µ": r"$\mu$",
        "†": r"\dag{}",
        "–": "--",
        "…": r"\ldots{}",
        "“": "``",
        "”": "''",
    }
)
"""How LaTeX writes its own special characters, and characters that not every engine and font has."""


def write_latex(results: Results, folder: str | os.PathLike[str]) -> list[Path]:
    """Write every table of ``results`` for print into ``folder``: ``NAME.tex``, one ``table`` each.

    The tables need the package booktabs. Raises ``BadInput`` if the folder cannot be written.
    """
    tables = [taken(wide_table(results)), depth_table(results), *task_tables(results)]
    tables = [shown for shown in tables if shown.entries]
    paths = [Path(folder) / f"{shown.name}.tex" for shown in tables]
    with writing(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, shown in zip(paths, tables, strict=True):
            path.write_text(latex(shown), encoding="utf-8")
    return paths


def latex(shown: TextTable) -> str:
    """``shown`` as a LaTeX table with its title, its note and the label ``tab:NAME``."""
    heads = [head.text for head in shown.heads]
    table = pd.DataFrame(list(shown.entries), columns=range(len(heads)))
    styler = table.style.hide(axis="index").format(escaped).relabel_index(list(map(escaped, heads)), axis="columns")
    longest = [max(map(len, entries), default=0) for entries in zip(*shown.entries, strict=True)]
    text: str = styler.to_latex(
        hrules=True,
        position_float="centering",
        column_format="".join(_alignment(*column) for column in zip(shown.heads, longest, strict=True)),
        label=f"tab:{shown.name}",
        caption=escaped(" ".join([f"{shown.title}.", *shown.note.split()])),
    )
    return text


def escaped(text: object) -> str:
    """``text`` as LaTeX prints it."""
    return str(text).translate(WRITTEN)


def _alignment(head: Heading, longest: int) -> str:
    return "r" if head.number else r"p{0.2\linewidth}" if longest > LONG else "l"
