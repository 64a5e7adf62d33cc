"""The page: valid, escaped, self-contained, and written without torch."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from html.parser import HTMLParser
from itertools import chain

import pytest

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.report.page import write_one_file, write_report
from highway_bench.results.integrity import ADDED
from highway_bench.results.store import Store
from tests.rows import cell, frame_of, memory, timed, whole

VOID = {"meta", "br", "hr", "img", "input", "link"}
HOSTILE = "<script>alert(1)</script>"
RUN = {
    "command": ["highway-bench", "run", "--block", f"{HOSTILE}"],
    "torch": "2.13.0",
    "blocks": {
        "plain": {
            "equation": "y = H(x)",
            "source": "arXiv:1505.00387, eq. 1",
            "summary": "no carry",
            "baseline": True,
        },
        f"evil{HOSTILE}": {"equation": "y < x & z", "source": "javascript:alert(1)", "summary": HOSTILE},
    },
}


class Page(HTMLParser):
    """Checks that tags are closed in order; collects tags, ids, addresses and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open = []
        self.tags = []
        self.ids = []
        self.loads = []
        self.links = []
        self.words = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"{tag} has {name}"
            if name == "id":
                self.ids.append(value or "")
            if name == "href" and tag == "a":
                self.links.append(value or "")
            elif name in ("href", "xlink:href", "src", "srcset", "action"):
                self.loads.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def store_of(path, rows):
    by_digest = {}
    for row in rows:
        by_digest.setdefault(row["digest"], []).append(row)
    with Store(path) as store:
        store.add_run("run-1", RUN)
        for digest, of_digest in by_digest.items():
            store.put(digest, of_digest)
    return path


@pytest.fixture(scope="module")
def text(standard, tmp_path_factory):
    """The page of the whole synthetic run."""
    return write_report(standard, tmp_path_factory.mktemp("page")).page.read_text(encoding="utf-8")


def test_the_page_is_balanced_and_loads_nothing(text):
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert all(address.startswith(("#", "data:")) for address in page.loads)
    assert all(link.startswith(("#", "https://arxiv.org/abs/")) for link in page.links)
    assert {link[1:] for link in page.links if link.startswith("#") and "/" not in link} <= set(page.ids)
    assert page.tags.count("script") == 2  # the data, and what chooses among them
    assert len(text) <= 1_500_000
    assert not re.search(r"@import|url\((?!#)", text)


def test_hostile_names_and_messages_are_text_everywhere(tmp_path):
    evil = f"evil{HOSTILE}"
    rows = whole(("plain", evil), families=("dense", "dense-pair", "conv"))
    rows = [row | {"machine": f"cpu{HOSTILE}", "family": f"$x_{{{row['family']}}}<b>" if row["family"] == "conv"
                   else row["family"]} for row in rows]  # fmt: skip
    bad = cell("throughput", evil, "dense", 4, phase="forward", machine=f"cpu{HOSTILE}")
    rows.append(bad | {"metric": "", "status": "failed", "message": f"'\"><img src=x onerror=alert(1)>{HOSTILE}"})
    report = write_report(store_of(tmp_path / "store.sqlite", rows), tmp_path / "out")
    text = report.page.read_text(encoding="utf-8")
    page = Page(text)
    assert page.tags.count("script") == 2  # the data, and what chooses among them
    assert len(text) <= 1_500_000
    assert {"img", "b"}.isdisjoint(page.tags)
    assert HOSTILE in "".join(page.words)
    assert not any(link.startswith("javascript") for link in page.links)
    assert len(report.figures) > 5
    for path in report.figures:
        figure = path.read_text(encoding="utf-8")
        assert "<script" not in figure
        assert "&lt;script&gt;" in figure


def test_what_cannot_be_reported_is_one_line(tmp_path):
    with pytest.raises(NothingMeasured):
        write_report(store_of(tmp_path / "store.sqlite", []), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(BadInput, match="no store"):
        write_report(tmp_path / "none.sqlite", tmp_path)
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    frame = frame_of(memory(cell("memory", "plain", "dense", 4), 10.0))
    with pytest.raises(BadInput, match="cannot write"):
        write_report(frame, tmp_path / "file")


def test_a_store_of_version_0_2_makes_a_page_without_torch(tmp_path):
    """Its schema was the first: no starts, keys of sources, and no samples that were taken in turn."""
    later = ("plain_ratio", "yardstick_ratio", "waited", "disturbed")
    former = {"parameter_bytes": "parameters"}
    rows = whole(("plain", "highway"), 5, ("dense",)) + timed({"plain": 1.0, "pre-norm": 2.0})
    rows = [row for row in rows if row["metric"] not in later]
    rows = [row | {"metric": former.get(row["metric"], row["metric"])} for row in rows]
    store = store_of(tmp_path / "store.sqlite", rows)
    with closing(sqlite3.connect(store)) as database, database:
        for name in chain(*ADDED.values()):
            database.execute(f'ALTER TABLE "rows" DROP COLUMN "{name}"')
        database.execute("UPDATE meta SET value = '1' WHERE name = 'schema'")
    program = (
        "import sys, highway_bench.report.page as report\n"
        f"report.write_report({str(store)!r}, {str(tmp_path / 'out')!r})\n"
        "sys.exit(any(name.partition('.')[0] == 'torch' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=600).returncode == 0
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    Page(text)
    assert "dense on mnist-5k" in text


def test_the_page_leads_with_the_choice_and_folds_the_rest(text):
    order = [text.index(f'id="{name}"') for name in ("choice", "overview", "more", "figures", "tasks", "provenance")]
    assert order == sorted(order)
    first, folded = text[: text.index("<details")], text[text.index("<details") :]
    assert "<svg" not in first
    assert 'id="say" aria-live="polite">Take ' in first
    assert "in the data folder" in folded
    assert text.count("<svg") == text.count('role="img"') > 5


def test_one_file_leads_to_no_other(tmp_path):
    frame = frame_of(whole(("plain", "residual"), families=("dense",)))
    written = write_one_file(frame, tmp_path / "page" / "mail.html")
    assert list(written.parent.iterdir()) == [written]
    page = Page(written.read_text(encoding="utf-8"))
    assert all(address.startswith(("#", "data:")) for address in page.loads)
    assert all(link.startswith(("#", "https://")) for link in page.links)
    assert page.tags.count("svg") > 2
