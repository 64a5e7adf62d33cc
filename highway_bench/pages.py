"""The folders of pages below the folder of reports, and the commands that write them."""

from __future__ import annotations

from pathlib import Path

from highway_bench.errors import NothingMeasured

REPORT, HISTORY = "page", "asv/html"
PAGES = {  # a folder's name for the user, and its command; the first that is there is shown first
    REPORT: ("report", "highway-bench report"),
    HISTORY: ("history", "highway-bench history publish"),
}


def index(folder: str) -> str:
    """The first page of a folder of pages."""
    return f"{folder}/index.html"


def no_pages(reports: Path) -> NothingMeasured:
    """The error that there is none of ``PAGES`` in ``reports``."""
    commands = " or ".join(how for _, how in PAGES.values())
    return NothingMeasured(f"there are no pages in {reports}: run {commands} first")
