"""Checkpoints: a run continues from one bit for bit. A broken checkpoint, or that of other cells, is never used."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import signal
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from highway_bench.execution.runner import run_cells
from highway_bench.results import Store
from highway_bench.tasks import tasks
from highway_bench.training import checkpoint
from highway_bench.training.checkpoint import Checkpoint, CheckpointFolder, headers_in, sweep
from highway_bench.training.population import Population
from tests.cells import on_digits
from tests.execution.processes import run_apart, write_cells
from tests.training.digits import training


class Killed(Exception):
    """Represents the end of the process."""


def until(steps, file, members):
    """A check that saves the state after ``steps`` steps and then ends the run."""

    def check():
        if len(members[0].losses) == steps:
            file.save(members)
            raise Killed

    return check


def assert_continued(again, whole):
    """Bit for bit."""
    for one, other in zip(again, whole, strict=True):
        assert list(one.losses) == pytest.approx(list(other.losses), rel=0, abs=0, nan_ok=True)
        assert (one.rate, one.epochs, one.together) == (other.rate, other.epochs, other.together)
        assert list(one.times) == sorted(one.times)


@pytest.mark.parametrize(
    "words",
    [
        {"optimiser": "sgd"},
        {"optimiser": "adam", "rate": 0.01},
        {"optimiser": "adam", "rate": 0.01, "epsilon": 1e-3, "epsilon_place": "outside"},
        {"optimiser": "adamw", "rate": 0.01, "weight_decay": 0.1, "schedule": "cosine", "warm_up": 30, "clip": 0.5},
        {"family": "conv", "options": {"family_options": {"norm_kind": "batch"}}, "block": "pre-norm"},
        {"evaluated": True, "batch_size": 400, "last_batch": "keep"},
    ],
)
def test_a_training_continues_bit_for_bit(tmp_path, words):
    whole, first, second = (training(**words) for _ in range(3))
    whole.run()
    file = Checkpoint(tmp_path / "new", ["a"])
    with pytest.raises(Killed):
        first.run(until(25, file, [first]))
    assert file.restore([second])
    assert len(second.losses) == len(second.times) == 25
    second.run()
    assert_continued([second], [whole])
    for mine, theirs in zip(second.network.state_dict().values(), whole.network.state_dict().values(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("steps", [0, 25, 36])
def test_a_stopped_training_continues_with_the_next_step(tmp_path, monkeypatch, steps):
    """Dropout continues its random sequence, and an epoch (10 steps here) is evaluated once."""
    whole, first, second = (training(batch_size=400, evaluated=True) for _ in range(3))
    for one in (whole, first, second):
        one.network.body.leave = torch.nn.Dropout(0.5)
    whole.run()
    file = Checkpoint(tmp_path, ["a"])
    stop_after(steps, lambda: len(first.losses), monkeypatch)
    file.train([first], first.run)
    assert len(first.losses) == steps
    torch.manual_seed(99)
    assert file.restore([second])
    second.run()
    assert_continued([second], [whole])


@pytest.mark.parametrize("steps", [24, 36])
def test_a_stopped_population_continues_with_the_next_step(tmp_path, monkeypatch, steps):
    words = {"optimiser": "adam", "rate": 0.01, "batch_size": 400, "evaluated": True}
    whole, first, second = ([training(seed=seed, **words) for seed in range(3)] for _ in range(3))
    Population(whole).run()
    file = Checkpoint(tmp_path, ["a", "b", "c"])
    population = Population(first)
    taken = Mock(wraps=population._step)
    monkeypatch.setattr(population, "_step", taken)
    stop_after(steps, lambda: taken.call_count, monkeypatch)
    file.train(first, population.run)
    assert [len(member.losses) for member in first] == [steps] * 3
    assert file.restore(second)
    Population(second).run()
    assert_continued(second, whole)


def stop_after(steps, done, monkeypatch):
    """Replaces SIGTERM: the run should stop once ``steps`` steps are ``done``."""

    @contextmanager
    def stop():
        yield lambda: done() >= steps

    monkeypatch.setattr(checkpoint, "deferred_sigterm", stop)


@pytest.mark.parametrize(
    "words",
    [
        {"optimiser": "sgd"},
        {"optimiser": "adamw", "weight_decay": 0.1, "schedule": "cosine", "warm_up": 3},
    ],
)
def test_a_population_continues_bit_for_bit(tmp_path, words):
    """One of its members has diverged before the checkpoint."""

    whole, first, second = (
        [training("residual", seed=seed, rate=rate, steps=70, **words) for seed, rate in enumerate((0.01, 1e200, 0.03))]
        for _ in range(3)
    )
    Population(whole).run()
    file = Checkpoint(tmp_path, ["a", "b", "c"])
    with pytest.raises(Killed):
        Population(first).run(until(50, file, first))
    assert file.restore(second)
    assert [len(member.losses) for member in second] == [50, 25, 50]
    Population(second).run()
    assert_continued(second, whole)


def test_a_member_can_continue_alone(tmp_path):
    """The others' results were saved before the kill, or the group ran out of time."""
    whole = training(seed=1, rate=0.03)
    whole.run()
    first = [training(seed=seed, rate=0.03) for seed in range(2)]
    with pytest.raises(Killed):
        Population(first).run(until(25, Checkpoint(tmp_path, ["a", "b"]), first))
    second = training(seed=1, rate=0.03)
    assert Checkpoint(tmp_path, ["b"]).restore([second])
    second.run()
    assert list(second.losses) == pytest.approx(list(whole.losses), rel=1e-9)


def test_the_state_of_other_cells_is_not_used(tmp_path):
    Checkpoint(tmp_path, ["a", "b"]).save([training(), training(seed=1)])
    assert not Checkpoint(tmp_path, ["c"]).restore([training()])
    assert not Checkpoint(tmp_path, ["a", "c"]).restore([training(), training()])
    assert not Checkpoint(tmp_path / "none", ["a"]).restore([training()])


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-100],
        lambda content: b"",
        lambda content: content[:-100] + bytes(100),
        lambda content: b"\xff\n" + content,
    ],
)
def test_a_broken_state_is_not_used(tmp_path, damage):
    file = Checkpoint(tmp_path, ["a"])
    file.save([training()])
    file.path.write_bytes(damage(file.path.read_bytes()))
    with pytest.warns(UserWarning, match="is broken"):
        assert not file.restore([training()])
    assert not file.path.exists()
    assert not file.restore([training()])  # without a warning


def test_a_checkpoint_cannot_run_code(tmp_path):
    """A pickle that creates a file when it is loaded, in a checkpoint with the right length and hash."""

    class Touch:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (tmp_path / "ran",)

    content = io.BytesIO()
    torch.save({"key": Touch()}, content)
    header = {"keys": ["key"], "bytes": len(content.getvalue())}
    header["sha256"] = hashlib.sha256(content.getvalue()).hexdigest()
    (tmp_path / "a.checkpoint").write_bytes(json.dumps(header).encode() + b"\n" + content.getvalue())
    with pytest.raises(pickle.UnpicklingError):
        checkpoint.read(tmp_path / "a.checkpoint")
    assert not (tmp_path / "ran").exists()


def test_a_kill_during_a_write_leaves_the_old_state(tmp_path, monkeypatch):
    file, one = Checkpoint(tmp_path, ["a"]), training(steps=60)
    with pytest.raises(Killed):
        one.run(until(25, file, [one]))

    def killed(_):
        raise Killed

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(Killed):
        file.save([one])
    monkeypatch.undo()
    again = training(steps=60)
    assert file.restore([again])
    assert len(again.losses) == 25


def test_a_state_is_saved_once_a_minute(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    file, one, written = Checkpoint(tmp_path, ["a"]), training(), []
    monkeypatch.setattr(file, "save", written.append)
    for now[0] in (10.0, 59.0, 60.0, 70.0, 119.0, 121.0):
        file.save_if_due([one])
    assert len(written) == 2


def test_a_full_disk_loses_the_checkpoint_and_not_the_run(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "WRITING_FACTOR", 0.0)
    file, one = Checkpoint(tmp_path, ["a"]), training(steps=60)
    with pytest.warns(UserWarning, match="No space left") as caught:
        one.run(lambda: file.save_if_due([one]))
    assert len(caught) == 1
    assert len(one.losses) == 60
    assert list(tmp_path.iterdir()) == []


def test_checkpoints_of_ended_cells_are_removed(tmp_path):
    folder = tmp_path / "saved"
    Checkpoint(folder, ["a", "b"]).save([training(), training()])
    Checkpoint(folder, ["c"]).save([training()])
    (folder / "killed.unfinished").touch()
    sweep(folder, {"a"})
    assert {keys for _, keys in headers_in(folder)} == {frozenset("ab"), frozenset("c")}
    sweep(folder, {"a", "b"})
    assert {keys for _, keys in headers_in(folder)} == {frozenset("c")}
    Checkpoint(folder, ["c"]).remove()
    assert list(folder.iterdir()) == []  # the folder stays: another worker may be about to write there
    sweep(folder, set())
    assert not folder.exists()
    sweep(folder, set())


def test_cells_are_grouped_by_their_file(tmp_path):
    cells = [trial(seed=seed) for seed in range(4)]
    file = CheckpointFolder(tmp_path, {cell: f"key {cell.seed}" for cell in cells})
    assert file.by_file(cells) == [cells]
    file.checkpoint([cells[1], cells[3]]).save([training(), training()])
    assert file.by_file(cells) == [[cells[1], cells[3]], [cells[0], cells[2]]]


def trial(**changes):
    return on_digits(
        "residual", **{"depth": 3, "rate": 0.05, "steps": 80, "together": 4, "dtype": "float64", **changes}
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "status", "from_step"), [(signal.SIGKILL, -signal.SIGKILL, 50), (signal.SIGINT, 130, 60)]
)
def test_a_killed_or_interrupted_run_continues(tmp_path, monkeypatch, way, status, from_step):
    """The runner is killed, or gets Ctrl-C, in step 60, when one member has diverged. The others continue from the last
    check, or from step 60."""
    cells = [trial(seed=0), trial(seed=1, rate=1e200), trial(seed=2)]
    log, lines = tmp_path / "log.txt", tmp_path / "cells.jsonl"
    write_cells(lines, cells)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setenv("CHUNKS", str(log))
    with monkeypatch.context() as first:
        first.setenv("STOP_AT", "60")
        first.setenv("STOP_WITH", way.name)
        assert run_apart(tmp_path / "store.sqlite", lines, plugins=["kills_runner"]).wait(600) == status
    folder = tmp_path / "store.sqlite.checkpoints"
    assert [len(keys) for _, keys in headers_in(folder)] == [3]

    with Store(tmp_path / "store.sqlite") as store:
        assert run_cells(cells, store, workers=1, plugins=["kills_runner"], command=["test"]).measured == 3
        stored = {(row["seed"], row["metric"], row["index"]): row["value"] for row in store.rows()}
    assert log.read_text().splitlines() == ["0 3", "25 2", "50 2", f"{from_step} 2", "75 2"]
    assert not folder.exists()
    for outcome in tasks.get("trainability").measure(cells):
        assert outcome.error is None
        for one in outcome.measurements:
            if one.metric in ("loss", "final_loss", "together", "success"):
                expected = None if one.value is None else pytest.approx(one.value, rel=1e-9)
                assert stored[outcome.cell.seed, one.metric, one.index] == expected
    assert stored[0, "together", 0.0] == 3.0
