"""``nox -s gpu``: what a call runs, where the next one goes on, what is interrupted, and what lacks something."""

import dataclasses
import sqlite3
import sys
import time
from contextlib import closing

import pytest

from benches import gpu, gpu_hours, gpu_steps
from highway_bench.errors import BadInput


@pytest.fixture
def session(tmp_path):
    return gpu_steps.Session(tmp_path, "cuda", False, "a" * 40, False)


def fake(monkeypatch, ends):
    """Replace commands and clock. ``ends`` gives status, reason and seconds of a command, from its name and the seconds
    that are left; the returned list has the names of the commands that ran."""
    ran = []
    now = [0.0]

    def run(command, log, seconds):
        ran.append(command[0])
        status, reason, taken = ends(command[0], seconds)
        now[0] += taken
        return status, reason

    monkeypatch.setattr(gpu, "run_command", run)
    monkeypatch.setattr(gpu.time, "monotonic", lambda: now[0])
    return ran


def step(name, minutes=1.0, **fields):
    return gpu_steps.Step(name, "", lambda _: [name], minutes, **fields)


def in_its_time(seconds):
    """Commands that take ``seconds``, or are interrupted."""
    return lambda _, left: (gpu.DONE, "", seconds) if left >= seconds else (gpu.CUT, "the time was up", left)


def test_a_call_goes_on_where_the_last_one_stopped(session, monkeypatch):
    """Nine minutes a call. The second step is interrupted and resumed; the third starts in a call of its own."""
    needed = {"first": 60.0, "long": 600.0, "whole": 500.0, "last": 10.0}

    def ends(name, left):
        status, reason, taken = in_its_time(needed[name])(name, left)
        if name == "long":
            needed[name] -= taken  # what it stored
        return status, reason, taken

    ran = fake(monkeypatch, ends)
    steps = [
        step("first"),
        step("long", 10, resumes=True),
        step("whole", 8),
        step("last", resumes=True),
    ]
    calls = []
    for _ in range(5):
        ran.clear()
        gpu.run_steps(session, gpu.State.of(session), steps, 520.0 + gpu.CLOSING)
        calls.append(list(ran))
    assert calls == [["first", "long"], ["long", "last"], ["whole"], [], []]
    state = gpu.State.of(session)
    assert {state.status(one.name) for one in steps} == {gpu.DONE}
    assert state.steps["long"]["seconds"] == 600.0


def test_a_step_that_goes_on_from_nothing_is_not_tried_for_ever(session, monkeypatch):
    """Each call interrupts it; two calls store a result, and the third does not."""
    rows = iter([1, 2, 2, 2])

    def ends(name, left):
        with closing(sqlite3.connect(session.store)) as store, store:
            store.execute('CREATE TABLE IF NOT EXISTS "rows" (number)')
            store.execute('DELETE FROM "rows"')
            store.executemany('INSERT INTO "rows" VALUES (?)', [(number,) for number in range(next(rows))])
        return gpu.CUT, "the time was up", left

    ran = fake(monkeypatch, ends)
    statuses = []
    for _ in range(4):
        state = gpu.State.of(session)
        gpu.run_steps(session, state, [step("long", 10, resumes=True)], 540.0)
        statuses.append(state.status("long"))
    assert statuses == [gpu.CUT, gpu.CUT, gpu.FAILED, gpu.FAILED]
    assert "longer" in state.steps["long"]["reason"]
    assert ran == ["long"] * 3


def test_a_step_waits_for_the_one_whose_result_it_takes(session, monkeypatch):
    """It starts once that one has ended, in whichever call, even if it failed: a part may be stored."""
    needed = {"point": 800.0, "import": 1.0, "figure1": 1.0, "hours": 1.0}
    statuses = iter([gpu.CUT, gpu.DONE, gpu.DONE, gpu.FAILED, gpu.DONE])
    ran = fake(monkeypatch, lambda name, _: (next(statuses), "", needed[name]))
    steps = [step("point", resumes=True), step("import", after="point")]
    for _ in range(2):
        gpu.run_steps(session, gpu.State.of(session), steps, 880.0 + gpu.CLOSING)
    assert ran == ["point", "point", "import"]
    steps = [step("figure1"), step("hours", after="figure1")]
    state = gpu.State.of(session)
    gpu.run_steps(session, state, steps, 900.0)
    assert ran[3:] == ["figure1", "hours"]


def test_checkpoints_of_a_long_training_are_progress(session):
    before = gpu.progress(session)
    folder = session.state / "results.sqlite.checkpoints"
    folder.mkdir()
    (folder / "one").touch()
    assert gpu.progress(session) != before


def test_a_step_without_its_data_is_lacking(session, monkeypatch):
    def load(_):
        raise BadInput("no folder has MNIST's IDX files")

    monkeypatch.setattr("highway_bench.data.mnist.Mnist.load", load)
    ran = fake(monkeypatch, lambda *_: (gpu.DONE, "", 1.0))
    (figure1,) = [one for one in gpu_steps.STEPS if one.name == "figure1"]
    state = gpu.State.of(session)
    gpu.run_steps(session, state, [figure1], 540.0)
    assert (ran, state.status("figure1")) == ([], gpu.LACKING)
    assert state.steps["figure1"]["reason"] == "no folder has MNIST's IDX files"
    assert gpu.why_not(figure1, dataclasses.replace(session, tiny=True), state) == ""


def test_a_state_belongs_to_one_commit_and_device(session, monkeypatch):
    fake(monkeypatch, lambda *_: (gpu.DONE, "", 1.0))
    gpu.run_steps(session, gpu.State.of(session), [step("one")], 540.0)
    for other in ({"commit": "b" * 40}, {"device": "cpu"}, {"tiny": True}):
        with pytest.raises(BadInput, match="--state"):
            gpu.State.of(dataclasses.replace(session, **other))


def test_commands_end_as_they_say_and_leave_a_log(tmp_path):
    log = tmp_path / "log"
    failing = "import sys; print('a line'); print('the reason'); sys.exit(3)"
    assert gpu.run_command([sys.executable, "-c", "print('fine')"], log, 60) == (gpu.DONE, "")
    assert gpu.run_command([sys.executable, "-c", failing], log, 60) == (gpu.FAILED, "exit status 3: the reason")
    assert "fine\n" in log.read_text()


def test_a_command_is_interrupted_so_that_it_can_store(tmp_path, monkeypatch):
    stored = tmp_path / "stored"
    start = gpu.subprocess.Popen

    def started(*command, **options):
        """The process, once it can be interrupted."""
        process = start(*command, **options)
        while not stored.exists():
            time.sleep(0.05)
        return process

    monkeypatch.setattr(gpu.subprocess, "Popen", started)
    code = (
        "import pathlib, signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where the tests run in the background
        "try:\n"
        f"    pathlib.Path({str(stored)!r}).touch()\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        f"    pathlib.Path({str(stored)!r}).write_text('all')\n"
    )
    assert gpu.run_command([sys.executable, "-c", code], tmp_path / "log", 0.1) == (gpu.CUT, "the time was up")
    assert stored.read_text() == "all"


@pytest.mark.parametrize("tiny", [True, False])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("with_git", [True, False])
def test_every_step_has_a_command(session, tiny, device, with_git):
    here = dataclasses.replace(session, tiny=tiny, device=device, with_git=with_git)
    commands = {one.name: [str(word) for word in one.command(here)] for one in gpu_steps.STEPS}
    assert all(command[0] == sys.executable for command in commands.values())
    if not tiny:
        assert ("--commit" in commands["point"]) == (not with_git)
    assert ("cudagraph" in commands["modes"]) == ("tf32" in commands["dtypes"]) == (device == "cuda")
    for name in ("times", "dtypes", "modes", "standard", "figure1"):
        assert commands[name][commands[name].index("--device") + 1] == device
        assert commands[name][commands[name].index("--store") + 1] == str(here.store)


def test_the_hours_of_the_whole_figure():
    """A millisecond a network's step, of every kind but the deepest plain trials."""
    kinds = [
        gpu_hours.Kind(block, depth, is_trial)
        for block in ("plain", "highway")
        for depth in (9, 19, 49, 99)
        for is_trial in (True, False)
    ]
    seconds = dict.fromkeys(kinds, 1e-3)
    steps, networks = 240_000, 105
    assert f" {8 * networks * steps * 1e-3 / 3600:.3g} hours" in gpu_hours.table(seconds, "cpu")
    del seconds[gpu_hours.Kind("plain", 99, True)]
    assert f" {(8 * networks - 100) * steps * 1e-3 / 3600:.3g} hours" in gpu_hours.table(seconds, "cpu")
