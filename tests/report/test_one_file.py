"""The page as one file: it leads to no file, figures are part of it, and nothing else is written."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from highway_bench.report.files import write_one_file, write_report


class Addresses(HTMLParser):
    """Every address in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = ("href", "xlink:href", "src", "srcset", "action", "data", "poster")
        self.addresses += [(tag, value or "") for name, value in attrs if name in names]


def history_of(folder: Path) -> None:
    """asv's pages next to a report in ``folder``."""
    (folder / "asv/html").mkdir(parents=True)
    (folder / "asv/html/index.html").write_text("", encoding="utf-8")


def test_one_file_leads_to_no_other(make: dict[str, Any], tmp_path: Path) -> None:
    history_of(tmp_path)
    frame = make["frame"](make["whole"](("plain", "residual"), families=("dense",)))
    page = write_one_file(frame, tmp_path / "page" / "mail.html")
    text = page.read_text(encoding="utf-8")
    assert list(page.parent.iterdir()) == [page]
    addresses = Addresses(text).addresses
    assert any(tag == "use" for tag, _ in addresses)  # within the figures
    assert [(tag, value) for tag, value in addresses if not value.startswith(("#", "https://", "data:"))] == []
    assert {tag for tag, value in addresses if value.startswith("https://")} <= {"a"}  # sources; nothing is loaded
    assert text.count("<svg") > 2
    written = write_report(
        make["frame"](make["memory"](make["cell"]("memory", "plain", "dense", 4), 10.0)), page.parent
    )
    links = Addresses(written.page.read_text(encoding="utf-8")).addresses
    assert any(value.startswith("../asv/") for _, value in links)  # the page of a folder does lead to the history
