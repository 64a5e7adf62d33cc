"""Tables of documents that are written by hand list what is registered."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from highway_bench.blocks import blocks
from highway_bench.families import families
from highway_bench.studies.reproduce.base import reproductions

ROOT = Path(__file__).parents[2]


def first_column(document: str, head: str) -> list[str]:
    """The names in the first column of the table whose first column is headed ``head``."""
    lines = iter((ROOT / document).read_text(encoding="utf-8").splitlines())
    next(line for line in lines if line.startswith(f"| {head} |"))
    next(lines)
    names = []
    for line in lines:
        if not line.startswith("|"):
            break
        names.append(line.split("|")[1].strip().strip("`"))
    return names


@pytest.mark.parametrize(
    ("document", "head", "registered"),
    [
        ("docs/reproductions.md", "name", reproductions.names()),
        ("README.md", "block", [name for name in blocks.names() if blocks.get(name).group == "core"]),
        ("docs/blocks.md", "family", families.names()),
        ("docs/blocks.md", "modern block", [name for name in blocks.names() if blocks.get(name).group == "modern"]),
    ],
)
def test_a_table_lists_what_is_registered(document: str, head: str, registered: Iterable[str]) -> None:
    assert sorted(first_column(document, head)) == sorted(registered)
