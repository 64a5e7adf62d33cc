"""Stores of older schemas are read as they are, and migrated when they are opened for writing."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from highway_bench.errors import BadInput
from highway_bench.results import COLUMNS, SCHEMA, Store, database
from highway_bench.results.integrity import columns_of
from tests.results.conftest import filled, some


def older_store(path, version, digest="a"):
    """A store of schema ``version`` with the rows of one cell."""
    filled(path, some(digest, 1.0))
    with closing(sqlite3.connect(path)) as db, db:
        for name in set(COLUMNS) - columns_of(version):
            db.execute(f'ALTER TABLE "rows" DROP COLUMN "{name}"')
        db.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (str(version),))


def columns_in(path):
    with closing(sqlite3.connect(path)) as db:
        return {name for _, name, *_ in db.execute('PRAGMA table_info("rows")')}


@pytest.mark.parametrize("version", range(1, SCHEMA))
def test_reading_changes_nothing_and_writing_migrates_after_a_backup(tmp_path, version):
    path = tmp_path / "s.sqlite"
    older_store(path, version)
    with Store(path, read_only=True) as store:
        (one,) = store.rows()
    assert (one["value"], one["samples"], one["paired"]) == (1.0, "[1.0]", None)
    assert columns_in(path) == columns_of(version)
    with Store(path) as store:
        store.put("b", some("b", 2.0, paired='{"plain": [1.0]}'))
    with Store(path, read_only=True) as store:
        assert [(one["digest"], one["value"], one["paired"]) for one in store.rows()] == [
            ("a", 1.0, None),
            ("b", 2.0, '{"plain": [1.0]}'),
        ]
    saved = tmp_path / f"s.sqlite.schema-{version}.bak"
    with Store(saved, read_only=True) as backup:
        assert [one["digest"] for one in backup.rows()] == ["a"]
    assert columns_in(saved) == columns_of(version)
    assert columns_in(path) == columns_of(SCHEMA)


def test_an_earlier_backup_is_not_overwritten(tmp_path):
    """A store may be replaced by an older one of the same name, and is then migrated again."""
    path = tmp_path / "s.sqlite"
    for digest in "abc":
        path.unlink(missing_ok=True)
        older_store(path, 1, digest)
        Store(path).close()
    for name, digest in (("schema-1.bak", "a"), ("schema-1-2.bak", "b"), ("schema-1-3.bak", "c")):
        with Store(tmp_path / f"s.sqlite.{name}", read_only=True) as backup:
            assert [one["digest"] for one in backup.rows()] == [digest]


def test_a_backup_that_cannot_be_written_leaves_the_store_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "s.sqlite"
    older_store(path, 1)
    monkeypatch.setattr(database, "backup_path", lambda path, version: tmp_path / "no folder" / "s.bak")
    with pytest.raises(BadInput, match="unable to open"):
        Store(path)
    assert columns_in(path) == columns_of(1)


OPEN = """
import sys, time
from highway_bench.errors import BadInput
from highway_bench.results import Store

while True:
    try:
        with Store(sys.argv[1]) as store:
            sys.exit(len(store.rows()) != 1)
    except BadInput as error:  # another process has it
        assert "is being written by another run" in str(error), error
        time.sleep(0.02)
"""


def test_processes_that_open_an_old_store_at_once_migrate_it_once(tmp_path):
    path = tmp_path / "s.sqlite"
    older_store(path, SCHEMA - 1)
    processes = [subprocess.Popen([sys.executable, "-c", OPEN, str(path)]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert [one.name for one in tmp_path.glob("*.bak")] == [f"s.sqlite.schema-{SCHEMA - 1}.bak"]
    assert columns_in(path) == columns_of(SCHEMA)
