"""Links from the report to the history: asv's pages, where they lie beside the page."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

PAGES = "../asv/html/index.html"  # as the page, which may not be there yet, says it
FOLLOWED = ("blocks.Depths.time_step", "blocks.Others.time_step")  # a block is in the one or the other


def history_links(folder: Path) -> dict[str, str]:
    """Address of the history's page of each block, relative to a page in ``folder``, and of all of it under ``""``.

    Empty where no pages were published beside it, or they cannot be read: a report needs no history.
    """
    try:
        index = json.loads((folder.resolve().parent / "asv/html/index.json").read_text(encoding="utf-8"))
        return {"": PAGES} | {
            block.strip("'"): f"{PAGES}#{name}?p-block={quote(block)}"
            for name in FOLLOWED
            if name in index["benchmarks"]
            for block in index["benchmarks"][name]["params"][0]
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # none, cut short, or of another shape
        return {}
