"""Runs in a process of their own, for tests that kill them; and as a script, such a run."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import psutil

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.runner import run_cells
from highway_bench.results import Store

FAKES = Path(__file__).parent  # the folder of the plug-in with the fake tasks


def environment():
    """For a process that finds this checkout and the fakes, whatever its folder."""
    folders = [str(FAKES), str(FAKES.parent / "cluster"), *filter(None, sys.path)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(folders)}


def write_cells(path, cells):
    """Write the cells of a run, one a line."""
    path.write_text("\n".join(json.dumps(asdict(cell)) for cell in cells), encoding="utf-8")


def run_apart(
    store,
    cells,
    *,
    engine="local",
    plugins=("runner_fakes",),
    stderr=subprocess.DEVNULL,
):
    """Start a run of the cells in a file, as a session; Ctrl-C ends it with status 130."""
    return subprocess.Popen(
        [sys.executable, __file__, str(store), str(cells), engine, *plugins],
        stderr=stderr,
        text=True,
        start_new_session=True,
        env=environment(),
        preexec_fn=heed_interrupts,
    )


def heed_interrupts():
    """A process started from a shell's background job ignores SIGINT; that of a test must not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_until(condition, seconds=300.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def stored_in(path):
    """The cells of the fake tasks that the store has with a result, as their log names them: by depth and seed."""
    try:
        with Store(path, read_only=True) as store:
            return {f"{row['depth']} {row['seed']}" for row in store.rows(metric="loss", status="ok")}
    except BadInput:  # no file, or no tables yet
        return set()


def begun_in(log):
    """The cells in the log of the fake tasks, by depth and seed; those of ``fake-span`` have them at the line's end."""
    lines = (line.split() for line in log.read_text(encoding="utf-8").splitlines())
    return [" ".join(words[1:3] if words[0] == "plain" else words[-2:]) for words in lines]


def workers_in(log):
    """The processes that the log of the fake tasks names."""
    lines = (line.split() for line in log.read_text(encoding="utf-8").splitlines())
    return {int(words[-1]) for words in lines if words[0] == "plain"}


if __name__ == "__main__":
    path, lines, engine, *plugins = sys.argv[1:]
    with Store(path) as store:
        cells = [Cell(**json.loads(line)) for line in Path(lines).read_text(encoding="utf-8").splitlines()]
        try:
            run_cells(cells, store, engine=engine, workers=2 if engine == "local" else None, plugins=plugins)
        except KeyboardInterrupt:
            sys.exit(130)
