"""Bad inputs: no traceback, no hang, the right exit status. One process has them all, a sample has its own."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from highway_bench.blocks import blocks
from highway_bench.cli import app
from highway_bench.data import sentiment
from highway_bench.history.machine import entry
from highway_bench.interactive.run import run
from tests.faults.bad_inputs import asv_results, data_files, options, plugins, stores
from tests.faults.scale import CHAIN, INPUTS, SHELL_INPUTS, note

LONGEST = 120  # seconds of one command
ROUND = min(INPUTS, 500)  # inputs of one seed
STATE = Path(CHAIN).absolute() / "inputs.json" if CHAIN else None
CONFIGURATION = Path(__file__).parents[2] / "asv.conf.json"
STATUSES = {0, 2, 3}
CHECKS = {("results", "check"): 1, ("check",): 1}  # commands whose status says that something is wrong


class Hang(BaseException):
    """A command did not end in time."""


@dataclass
class Tally:
    """What became of the inputs of all ``rounds`` so far."""

    rounds: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    parsed: int = 0
    faults: list[str] = field(default_factory=list)

    @classmethod
    def read(cls) -> Tally:
        """That of the last call in the chain's folder; a new one where there is none."""
        if STATE is None or not STATE.is_file():
            return cls()
        known = json.loads(STATE.read_text(encoding="utf-8"))
        return cls(**known | {name: Counter(known[name]) for name in ("kinds", "statuses")})

    def write(self) -> None:
        """Store it for the next call."""
        if STATE is not None:
            STATE.parent.mkdir(parents=True, exist_ok=True)
            STATE.write_text(json.dumps(vars(self)), encoding="utf-8")


@pytest.fixture(scope="module")
def strategy(tmp_path_factory):
    """Inputs of every kind; half of them are options."""
    folder = tmp_path_factory.mktemp("sound")
    run("memory", profile="smoke", family="dense", block=["plain", "highway"], workers=1, store=folder / "store.sqlite")
    root = folder / "checkout"
    root.mkdir()
    shutil.copyfile(CONFIGURATION, root / CONFIGURATION.name)
    who = ("-c", "user.name=n", "-c", "user.email=e")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=root, check=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True, text=True)
    machine = entry("box", None)
    point = {
        "commit_hash": commit.stdout.strip(),
        "env_name": "py3.11-torch2.13",
        "date": 0,
        "version": 2,
        "python": "3.11",
        "params": machine | {"python": "3.11", "torch": "2.13"},
        "requirements": {"torch": "2.13"},
        "result_columns": ["result", "params", "version", "started_at"],
        "results": {"blocks.Depths.peak_bytes": [[1.0, 2.0], [["'plain'", "'highway'"]], "1", 1]},
    }
    kinds = [
        plugins(),
        data_files(),
        stores(folder / "store.sqlite"),
        asv_results(root, machine | {"version": 1}, point),
        *[options()] * 4,
    ]
    return st.integers(0, len(kinds) - 1).flatmap(kinds.__getitem__)  # one_of would have the options once


@pytest.fixture
def process(monkeypatch, tmp_path):
    """This process as a command finds it: with an alarm, without a cluster, and with its folders back afterwards."""

    def ring(*_):
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", "data")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    yield
    signal.signal(signal.SIGALRM, before)


def fault_of(words, code, errors):
    """What is wrong with how a command ended; ``None`` if nothing is."""
    allowed = STATUSES | {status for start, status in CHECKS.items() if words[: len(start)] == start}
    if code not in allowed:
        return f"exit status {code}: {errors[-500:]}"
    lines = [line for line in errors.splitlines() if line.strip()]
    if (
        code == 2
        and not was_refused_by_the_parser(errors)
        and (len(lines) != 1 or not errors.startswith("highway-bench: "))
    ):
        return f"{len(lines)} lines: {errors[-500:]}"
    return None


def was_refused_by_the_parser(errors):
    """Whether the command's words were no valid command line."""
    return errors.lstrip().startswith("Usage:")


def forget(known):
    """Remove what a plug-in or a data file left in this process."""
    for name in set(blocks.names()) - known:
        blocks.unregister(name)
    for name in [name for name in sys.modules if name.startswith("plugin_")]:
        del sys.modules[name]
    for cached in (sentiment._texts, sentiment._vocabulary, sentiment._load):
        cached.cache_clear()


def try_here(one, tally):
    """Call the command in this process, in a folder of its own."""
    known = set(blocks.names())
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder, home = Path(name).absolute(), Path.cwd()
        one.prepare(folder)
        os.chdir(folder)
        signal.alarm(LONGEST)
        try:
            done = CliRunner().invoke(app, list(one.words), prog_name="highway-bench")
            fault = fault_of(one.words, done.exit_code, done.stderr)
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                fault = "".join(traceback.format_exception(done.exception)[-3:])
            refused = was_refused_by_the_parser(done.stderr)
            if refused and one.kind in ("data files", "stores"):  # whose words are fixed
                fault = "no command line"
            tally.parsed += not refused
            tally.statuses[str(done.exit_code)] += 1
        except Hang:
            fault = f"no end in {LONGEST} s"
        finally:
            signal.alarm(0)
            os.chdir(home)
            forget(known)
    tally.kinds[one.kind] += 1
    if fault is not None:
        tally.faults.append(f"{[word[:200] for word in one.words]}: {fault}")


def of_scale(inputs):
    """So many inputs; a fault is counted and does not stop them."""
    return settings(
        max_examples=inputs, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None
    )


@pytest.mark.usefixtures("process")
def test_no_input_gives_a_traceback(strategy):
    """In rounds, each with a seed of its own; in a chain's folder the next call goes on with the next round."""
    tally = Tally.read()
    for number in range(tally.rounds, tally.rounds + math.ceil(INPUTS / ROUND)):

        @seed(number)
        @of_scale(ROUND)
        @given(strategy)
        def every(one):
            try_here(one, tally)

        every()
        tally.rounds += 1
        tally.write()
        note(
            "inputs",
            inputs=tally.kinds.total(),
            parsed=tally.parsed,
            by_kind=dict(tally.kinds),
            by_status=dict(tally.statuses),
            faults=len(tally.faults),
        )
    assert not tally.faults, f"{len(tally.faults)} faults:\n" + "\n".join(tally.faults[:40])
    assert tally.kinds.total() >= 0.9 * INPUTS
    assert tally.parsed >= tally.kinds.total() / 2
    assert len(tally.kinds) == 5


@pytest.mark.slow
@pytest.mark.usefixtures("process")
def test_no_command_line_gives_a_traceback(strategy, tmp_path):
    """A sample through the real command line."""
    faults = []
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])

    @of_scale(SHELL_INPUTS)
    @given(strategy)
    def every(one):
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            one.prepare(Path(folder))
            done = subprocess.run(
                [sys.executable, "-m", "highway_bench", *one.words],
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": path},
            )
        fault = "a traceback" if "Traceback" in done.stderr else fault_of(one.words, done.returncode, done.stderr)
        if fault is not None:
            faults.append(json.dumps([*one.words]) + f": {fault}")

    every()
    assert not faults, "\n".join(faults)
