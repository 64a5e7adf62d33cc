"""The tables of documents that list what is registered."""

from pathlib import Path

import pytest

from highway_bench.blocks import blocks
from highway_bench.families import families
from highway_bench.studies.reproduce.base import reproductions

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("document", "head", "registered"),
    [
        ("docs/reproductions.md", "name", reproductions.names()),
        ("README.md", "block", [name for name in blocks.names() if blocks.get(name).group == "core"]),
        ("docs/blocks.md", "family", families.names()),
        ("docs/blocks.md", "modern block", [name for name in blocks.names() if blocks.get(name).group == "modern"]),
    ],
)
def test_a_table_of_a_document_lists_what_is_registered(document, head, registered):
    _, table = (ROOT / document).read_text(encoding="utf-8").split(f"\n| {head} |", 1)
    lines = table.partition("\n\n")[0].splitlines()[2:]
    assert sorted(line.split("|")[1].strip(" `") for line in lines if line.startswith("|")) == sorted(registered)
