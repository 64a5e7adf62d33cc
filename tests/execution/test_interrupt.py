"""A kill or Ctrl-C during a run: finished cells are stored, workers exit, and the same run resumes where it stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from highway_bench.cell import Cell
from highway_bench.execution.runner import run_cells
from highway_bench.results import Store

SCRIPT = """
    import json
    import sys

    from highway_bench.cell import Cell
    from highway_bench.results import Store
    from highway_bench.execution.runner import run_cells

    store, *keys = sys.argv[1:]

    if __name__ == "__main__":
        cells = [Cell(**json.loads(key)) for key in keys]
        with Store(store) as opened:
            try:
                run_cells(cells, opened, workers=2, plugins=["runner_fakes"])
            except KeyboardInterrupt:
                sys.exit(130)
"""
FOLDER = str(Path(__file__).parent)
QUICK, HELD, CELLS = 4, 2, 8  # two workers, so two cells are in flight when the signal comes


@pytest.fixture
def hold(tmp_path: Path) -> Path:
    path = tmp_path / "hold"
    path.touch()
    return path


@pytest.fixture
def cells(cell: Callable[..., Cell], hold: Path) -> list[Cell]:
    """Cells that all, but for the first ones, run as long as the file ``hold`` exists."""
    quick = [cell(depth=depth, seconds=2.0) for depth in range(1, QUICK + 1)]
    return [*quick, *(cell(depth=depth, hold=str(hold)) for depth in range(QUICK + 1, CELLS + 1))]


def started(tmp_path: Path, log: Path, cells: list[Cell]) -> subprocess.Popen[str]:
    """A runner in a separate process, whose quick cells have ended and whose others have begun."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    keys = [json.dumps(asdict(cell)) for cell in cells]
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "store.sqlite"), *keys],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([FOLDER, *sys.path])},
        preexec_fn=heed_interrupts,
    )
    deadline = time.monotonic() + 600
    while len(log.read_text().splitlines()) < QUICK + HELD or stored(tmp_path) < QUICK:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def heed_interrupts() -> None:
    """A process started from a shell's background job ignores SIGINT; that of a test must not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stored(tmp_path: Path) -> int:
    with Store(tmp_path / "store.sqlite", read_only=True) as store:
        return len(store.digests())


def wait_until_gone(log: Path) -> None:
    workers = {int(line.split()[-1]) for line in log.read_text().splitlines()}
    deadline = time.monotonic() + 60
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in workers):
        assert time.monotonic() < deadline, "a worker outlives its runner"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_stopped_goes_on(
    tmp_path: Path, log: Path, hold: Path, cells: list[Cell], fakes: str, sent: signal.Signals
) -> None:
    """Then all cells have results, and only those that were in flight began twice."""
    process = started(tmp_path, log, cells)
    process.kill() if sent == signal.SIGKILL else os.killpg(process.pid, sent)
    assert process.wait(60) == (-sent if sent == signal.SIGKILL else 130)
    errors = process.communicate()[1]
    assert sent == signal.SIGKILL or errors == ""  # no traceback, of the runner or a worker
    wait_until_gone(log)
    hold.unlink()
    with Store(tmp_path / "store.sqlite") as store:
        summary = run_cells(cells, store, workers=2, plugins=[fakes])
        assert (summary.stored, summary.measured) == (QUICK, CELLS - QUICK)
        assert {row["depth"] for row in store.rows(status="ok")} == set(range(1, CELLS + 1))
    begun = Counter(int(line.split()[1]) for line in log.read_text().splitlines())
    assert sorted(depth for depth, times in begun.items() if times > 1) == [QUICK + 1, QUICK + 2]


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    """No worker runs the script again."""
    script = tmp_path / "unguarded.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        from highway_bench.cell import Cell
        from highway_bench.errors import HighwayBenchError
        from highway_bench.execution.job import Job
        from highway_bench.execution.engines.local import LocalEngine

        print("began")
        cell = Cell(task="fake", block="plain", family="dense", depth=1, width=8, nominal_width=8)
        job = Job(task="fake", keys=("key",), cells=(cell,), mode="eager", threads=1, alone=False, timeouts=(20.0,))
        with LocalEngine(1) as engine:
            try:
                for event in engine.run([job]):
                    print(event)
            except HighwayBenchError as error:
                print(error)
    """),
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"},
    )
    assert done.stdout.count("began") == 1
    assert "unknown task 'fake'" in done.stdout
    assert done.returncode == 0
