"""Commands as processes: what only a process can show — Ctrl-C, a closed pipe, a plug-in that reaches its workers."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput
from highway_bench.results import Store
from tests.cli.conftest import environment
from tests.execution.processes import heed_interrupts, wait_until

LONG_RUN = """
    run trainability --profile smoke --family dense --block plain --block residual --depth 1 --dataset digits
    --recipe rate=0.1 --recipe steps=2000 --seed 0 --workers 1 --store store.sqlite
"""


@pytest.mark.slow
def test_new_block_from_file_to_rows(here, invoke, shell):
    """A new block outside the tree, and a layer of the user's: written, checked, run under workers, in the rows."""
    written = invoke("new-block my-gate")
    assert written.exit_code == 0, written.stderr
    assert "highway-bench check my-gate --plugin my_gate.py" in written.stdout
    assert invoke("new-block my-gate").exit_code == 2

    checked = invoke("check my-gate --plugin my_gate.py --family dense --json")
    blocks.unregister("my-gate")
    sys.modules.pop("my_gate")
    assert checked.exit_code == 0, checked.stdout
    found = json.loads(checked.stdout)
    assert found["passed"]
    assert any("signal" in (finding["note"] or "") for finding in found["results"])

    (here / "my_layers.py").write_text("from torch import nn\ndef make_layer(width): return nn.Linear(width, width)\n")
    ran = shell(
        "run memory --profile smoke --block plain --block my-gate --plugin my_gate.py --store store.sqlite --strict",
        "--family dense --family my_layers:make_layer",
    )
    assert ran.returncode == 0, ran.stderr
    with Store("store.sqlite", read_only=True) as store:
        rows = store.rows(block="my-gate", status="ok")
    assert {row["family"] for row in rows} == {"dense", "my_layers:make_layer"}


@pytest.mark.slow
def test_ctrl_c(here):
    """Exit status 130, one line, and finished measurements are stored."""
    process = subprocess.Popen(
        [sys.executable, "-m", "highway_bench", *LONG_RUN.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment(),
        preexec_fn=heed_interrupts,
    )
    wait_until(lambda: measured("store.sqlite") or process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "store.sqlite" in stderr.splitlines()[-1]
    assert "Traceback" not in stderr
    assert measured("store.sqlite")


def measured(path):
    if not Path(path).is_file():
        return 0
    try:
        with Store(path, read_only=True) as store:
            return len(store.digests())
    except BadInput:  # the file is there, its tables are not yet
        return 0


@pytest.mark.parametrize(
    ("output", "status", "said"),
    [(">/dev/full", 1, "highway-bench: cannot write: No space left on device\n"), (">&-", 0, "")],
)
@pytest.mark.parametrize("words", ["list tasks", "--help"])
def test_an_output_that_takes_nothing(here, words, output, status, said):
    command = f"{shlex.quote(sys.executable)} -m highway_bench {words} {output}"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (status, said)


def test_closed_pipe(here):
    """As in ``highway-bench list blocks | head -1``: no complaint."""
    process = subprocess.Popen(
        [sys.executable, "-m", "highway_bench", "list", "blocks", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(600) == 128 + signal.SIGPIPE
    process.stderr.close()
