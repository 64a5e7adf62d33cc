"""A kill or Ctrl-C during a run: finished cells are stored, workers exit, and the same run resumes where it stopped."""

import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter

import pytest

from highway_bench.execution.runner import run_cells
from highway_bench.results import Store
from tests.execution.processes import (
    begun_in,
    environment,
    is_alive,
    run_apart,
    stored_in,
    wait_until,
    workers_in,
    write_cells,
)

QUICK, HELD, CELLS = 4, 2, 8  # two workers, so two cells are in flight when the signal comes


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_stopped_goes_on(tmp_path, log, cell, fakes, sent):
    """Then all cells have results, and only those that were in flight began twice."""
    path, lines, hold = tmp_path / "store.sqlite", tmp_path / "cells.jsonl", tmp_path / "hold"
    hold.touch()  # as long as it exists, all cells but for the first ones run
    cells = [cell(depth=depth, seconds=2.0) for depth in range(1, QUICK + 1)]
    cells += [cell(depth=depth, hold=str(hold)) for depth in range(QUICK + 1, CELLS + 1)]
    write_cells(lines, cells)
    process = run_apart(path, lines, stderr=subprocess.PIPE)
    wait_until(
        lambda: process.poll() is not None or (len(begun_in(log)) >= QUICK + HELD and len(stored_in(path)) == QUICK)
    )
    os.killpg(process.pid, sent) if sent == signal.SIGINT else process.kill()
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == (130 if sent == signal.SIGINT else -sent), errors
    assert sent == signal.SIGKILL or errors == ""  # no traceback, of the runner or a worker
    wait_until(lambda: not any(map(is_alive, workers_in(log))))
    hold.unlink()
    with Store(path) as store:
        summary = run_cells(cells, store, workers=2, plugins=[fakes])
        assert (summary.stored, summary.measured) == (QUICK, CELLS - QUICK)
        assert {row["depth"] for row in store.rows(status="ok")} == set(range(1, CELLS + 1))
    twice = [name for name, times in Counter(begun_in(log)).items() if times > 1]
    assert sorted(twice) == [f"{depth} 0" for depth in (QUICK + 1, QUICK + 2)]


def test_a_script_without_a_guard_runs_once(tmp_path):
    """No worker runs the script again."""
    script = tmp_path / "unguarded.py"
    script.write_text(
        textwrap.dedent("""
        from highway_bench.errors import HighwayBenchError
        from highway_bench.execution.engines.local import LocalEngine
        from tests.inline_engine import cell_of, job_of

        print("began")
        with LocalEngine(1) as engine:
            try:
                for event in engine.run([job_of(cell_of("fake"))]):
                    print(event)
            except HighwayBenchError as error:
                print(error)
    """),
        encoding="utf-8",
    )
    words = [sys.executable, "-u", str(script)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False, env=environment())
    assert done.stdout.count("began") == 1
    assert "unknown task 'fake'" in done.stdout
    assert done.returncode == 0
