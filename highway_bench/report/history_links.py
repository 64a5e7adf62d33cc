"""Links from the report to the history, if asv's pages were published next to it."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

PAGES = "../asv/html/index.html"  # relative to the report's page
FOLLOWED = ("Depths.track_ratio", "Others.track_ratio")  # every block has one of these benchmarks


def history_links(folder: Path) -> dict[str, str]:
    """The address of each block's history, relative to a page in ``folder``; ``""`` has that of the whole history.

    Empty if no pages were published next to ``folder`` or if they cannot be read: a report needs no history.
    """
    try:
        index = json.loads((folder.resolve().parent / "asv/html/index.json").read_text(encoding="utf-8"))
        return {"": PAGES} | {
            block.strip("'"): f"{PAGES}#{name}?p-block={quote(block)}"
            for name, benchmark in index["benchmarks"].items()
            if name.partition(".")[2] in FOLLOWED
            for block in benchmark["params"][0]
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # absent, truncated, or another format
        return {}
