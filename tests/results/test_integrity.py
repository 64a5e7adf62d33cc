"""A damaged store is recognised when it is opened, is never written, and is read as far as it goes."""

import json
import random
import sqlite3
import sys
from contextlib import closing

import pytest

from highway_bench.errors import BadInput
from highway_bench.results import Store, integrity, row, salvage

PAGE = 4096
CELLS, ROWS = 120, 12


def digest(number):
    return f"{number:032x}"


def rows_of(number):
    return [
        row(
            digest=digest(number),
            metric="loss",
            axis="step",
            index=float(index),
            value=number + index / 100,
            status="ok",
            time_utc=f"2026-01-01T00:00:{number % 60:02}",
            run_id="r",
            block="plain",
            samples="[1.0, 2.0]",
            message="m" * 80,
        )
        for index in range(ROWS)
    ]


@pytest.fixture
def path(tmp_path):
    """A sound store of some hundred pages."""
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        for number in range(CELLS):
            store.put(digest(number), rows_of(number))
        store.add_run("r", {"command": ["run"], "started": "2026-01-01"})
    return path


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """As the store is small. ``results.salvage`` is the function, not the module."""
    monkeypatch.setattr(sys.modules[salvage.__module__], "GIVE_UP", 2 * CELLS * ROWS)


def change(path, *statements):
    with closing(sqlite3.connect(path)) as db, db:
        for sql in statements:
            db.execute(sql)


def progress_of(**changes):
    """In SQL, the progress of a run with some values changed."""
    known = {"run_id": "r", "process": 1, "updated": "", "cells": 2, "counts": {"ok": 2}, "left": 0, "running": []}
    return f"INSERT INTO meta VALUES ('progress', '{json.dumps(known | changes)}')"


def leaf_pages(path, table):
    """Pages whose bytes have a text that only the leaves of ``table`` have, counted from 0."""
    content = path.read_bytes()
    text = {"rows": b"m" * 80, "runs": b'"command"'}[table]
    return [page for page in range(1, len(content) // PAGE) if text in content[page * PAGE : (page + 1) * PAGE]]


def overwrite(path, page, content=None):
    with path.open("r+b") as out:
        out.seek(page * PAGE)
        out.write(content if content is not None else random.Random(page).randbytes(PAGE))


def inner(path):
    overwrite(path, leaf_pages(path, "rows")[20])


def first(path):
    overwrite(path, 0)


def zeroed(path):
    overwrite(path, leaf_pages(path, "rows")[3], bytes(PAGE))


def truncated(path):
    with path.open("r+b") as out:
        out.truncate(path.stat().st_size // 2 // PAGE * PAGE)


DAMAGES = (first, inner, zeroed, truncated)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_at_opening_and_nothing_is_written(path, damage, read_only):
    damage(path)
    before = path.read_bytes()
    with pytest.raises(BadInput, match=r"(malformed|not a database).* \(damaged.*check --store .* --salvage") as caught:
        Store(path, read_only=read_only)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_whole_cells_are_salvaged_and_no_part_of_one(path, tmp_path, damage):
    damage(path)
    before = path.read_bytes()
    done = salvage(path, tmp_path / "whole.sqlite")
    assert path.read_bytes() == before
    with Store(tmp_path / "whole.sqlite") as store:
        assert store.problems() == []
        found = store.digests()
        for number in (number for number in range(CELLS) if digest(number) in found):
            assert store.rows(digest=digest(number)) == rows_of(number)
        assert (len(found), done.rows) == (done.cells, done.cells * ROWS)
    assert bool(done.left_out) == (damage is not first)
    assert not done.left_out & found.keys()
    if damage is not truncated:
        assert done.cells + len(done.left_out) == CELLS
        assert done.cells >= CELLS - 4
        assert (done.runs, done.lost_runs) == (1, 0)


def test_a_sound_store_is_salvaged_whole(path, tmp_path):
    done = salvage(path, tmp_path / "copy.sqlite")
    assert (done.cells, done.rows, done.runs, done.lost_rows, done.left_out) == (CELLS, CELLS * ROWS, 1, 0, set())
    with Store(path, read_only=True) as first, Store(tmp_path / "copy.sqlite", read_only=True) as second:
        assert second.rows() == first.rows()
        assert second.runs() == first.runs()


@pytest.mark.parametrize("damaged", [None, 20, -1])
def test_a_number_far_from_all_others_is_salvaged_too(path, tmp_path, damaged):
    last = 'UPDATE "{0}" SET rowid = 9223372036854775807 WHERE rowid = (SELECT max(rowid) FROM "{0}")'
    change(path, last.format("rows"), last.format("runs"))
    if damaged is not None:
        overwrite(path, leaf_pages(path, "rows")[damaged])
    done = salvage(path, tmp_path / "whole.sqlite")
    assert done.cells + len(done.left_out) == CELLS
    assert len(done.left_out) <= 4
    assert (done.lost_rows > 0) == (damaged is not None)
    assert (done.runs, done.lost_runs) == (1, 0)


def test_values_that_no_run_writes_are_lost_with_their_cell(path, tmp_path):
    values = ("status = 'fine'", "value = 'much'", "value = 9e999", "samples = '[1'", "metric = NULL")
    for number, value in enumerate(values):
        change(path, f"""UPDATE rows SET {value} WHERE digest = '{digest(10 * number + 5)}' AND "index" = 4""")
    done = salvage(path, tmp_path / "whole.sqlite")
    assert done.left_out == {digest(10 * number + 5) for number in range(5)}
    for read_only in (True, False):
        with pytest.raises(BadInput, match="unknown status; it is damaged"):
            Store(path, read_only=read_only)
    with Store(path, read_only=True, checked=False) as store:
        assert len(store.problems()) == len(values)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("UPDATE rows SET recipe = '[1]' WHERE rowid = 3", "recipe"),
        ("UPDATE rows SET samples = 'much' WHERE rowid = 3", "samples"),
        ("UPDATE rows SET depth = 2.5 WHERE rowid = 3", "depth"),
        ("UPDATE rows SET low = -9e999 WHERE rowid = 3", "low"),
        ("UPDATE rows SET block = x'00ff' WHERE rowid = 3", "block"),
        ('UPDATE rows SET "index" = NULL WHERE rowid = 3', "index"),
        ("UPDATE runs SET provenance = '[]'", "record of run r"),
        ('UPDATE runs SET provenance = \'{"blocks": {"plain": 3}}\'', "record of run r"),
        ("INSERT INTO meta VALUES ('progress', '{\"cells\": 3}')", "progress"),
        (progress_of(counts={"ok": "2"}), "progress"),
        (progress_of(running=[3]), "progress"),
    ],
)
def test_values_that_no_run_writes_are_refused_at_opening(path, sql, problem):
    change(path, sql)
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(BadInput, match=problem) as caught:
            Store(path, read_only=read_only)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_what_cannot_be_salvaged(path, tmp_path):
    (tmp_path / "there").touch()
    with pytest.raises(BadInput, match="new file"):
        salvage(path, tmp_path / "there")
    with pytest.raises(BadInput, match="no store at"):
        salvage(tmp_path / "absent", tmp_path / "new")
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises(BadInput, match="no cell"):
        salvage(tmp_path / "text", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_large_store_is_checked_at_its_ends(path, monkeypatch):
    """Opening must not read a million rows; what is damaged inside is found by ``problems``, or when it is read."""
    inner(path)
    monkeypatch.setattr(integrity, "SMALL", 0)
    with Store(path, read_only=True) as store:
        assert store.problems()
        with pytest.raises(BadInput, match="malformed"):
            store.rows()
    overwrite(path, leaf_pages(path, "rows")[-1])
    with pytest.raises(BadInput, match="malformed"):
        Store(path)


def test_a_journal_next_to_a_damaged_store_stays(path, tmp_path):
    """A killed writer leaves a journal; opening must not copy it into a damaged file."""
    with Store(path) as store:
        store.put(digest(999), rows_of(999))
        journal = path.with_name(f"{path.name}-wal").read_bytes()
        content = path.read_bytes()
    path.write_bytes(content)
    path.with_name(f"{path.name}-wal").write_bytes(journal)
    inner(path)
    before = path.read_bytes()
    with pytest.raises(BadInput, match="malformed"):
        Store(path)
    assert path.read_bytes() == before
    assert path.with_name(f"{path.name}-wal").read_bytes() == journal


@pytest.mark.parametrize(
    "sql", ["CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END", "CREATE VIEW t AS SELECT 1"]
)
def test_sql_that_a_file_brings_along_is_refused(path, sql):
    change(path, sql)
    for read_only in (True, False):
        with pytest.raises(BadInput, match=r"(trigger|view) t"):
            Store(path, read_only=read_only)
