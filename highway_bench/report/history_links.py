"""Links from the report to the history, if asv's pages were published next to it."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

from highway_bench.pages import HISTORY, index

PAGES = f"../{index(HISTORY)}"  # relative to the report's page
FOLLOWED = ("Depths.track_ratio", "Others.track_ratio")  # every block has one of these benchmarks


def history_links(folder: Path) -> dict[str, str]:
    """The address of each block's history, relative to a page in ``folder``; ``""`` has that of the whole history.

    Empty if no pages were published next to ``folder`` or if they cannot be read: a report needs no history.
    """
    try:
        published = json.loads((folder.resolve().parent / HISTORY / "index.json").read_text(encoding="utf-8"))
        return {"": PAGES} | {
            block.strip("'"): f"{PAGES}#{name}?p-block={quote(block)}"
            for name, benchmark in published["benchmarks"].items()
            if name.partition(".")[2] in FOLLOWED
            for block in benchmark["params"][0]
        }
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):  # absent, or another format
        return {}
