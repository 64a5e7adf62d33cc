"""The session bench: asv's output is in a file, and the answer, the failed cells and the exit status come last."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

nox = pytest.importorskip("nox", reason="python -m pip install nox")

ROOT = Path(__file__).resolve().parents[1]
ANSWER = "Which connection to use\nfailed: memory highway dense: oom\n2 cells: 1 ok, 1 oom\n"


class Session:
    """Stands in for nox's: each command prints, and those in ``fails`` end with their status."""

    venv_backend = "none"

    def __init__(self, posargs: list[str], fails: dict[str, int], prints: Any) -> None:
        self.posargs, self.fails, self.prints = posargs, fails, prints
        self.commands: list[str] = []

    def run(self, *words: str, stdout: Any = None, **options: Any) -> None:
        name = " ".join(words[1:3] if words[1] == "history" else words[1:2])
        self.commands.append(name)
        output = {"run": ANSWER, "history run": "asv\n" * 150}.get(name, f"{name}\n")
        stdout.write(output) if stdout else self.prints(output)
        if status := self.fails.get(name):
            raise nox.command.CommandFailed(f"Returned code {status}", return_code=status)

    def log(self, line: str) -> None:
        self.prints(f"nox > {line}\n")

    warn = log

    def error(self, line: str) -> None:
        self.log(line)
        raise SystemExit(1)


@pytest.fixture(scope="module")
def noxfile() -> Any:
    """This checkout's noxfile, which reads pyproject.toml where it is loaded."""
    spec = importlib.util.spec_from_file_location("noxfile_of_this_checkout", ROOT / "noxfile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as context:
        context.chdir(ROOT)
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def bench(noxfile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the session in a folder of its own, and returns its status, its commands and what it printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()

    def run(*words: str, **fails: int) -> tuple[Any, list[str], list[str]]:
        session = Session(list(words), {name.replace("_", " "): one for name, one in fails.items()}, sys.stdout.write)
        try:
            status = noxfile.bench.func(session)
        except (SystemExit, nox.command.CommandFailed) as error:
            status = getattr(error, "code", None) or error.return_code
        return status, session.commands, capsys.readouterr().out.splitlines()

    return run


def test_the_answer_comes_last(bench: Any, tmp_path: Path) -> None:
    status, commands, lines = bench()
    assert status is None
    assert commands == ["run", "report", "history run", "history publish"]
    assert lines[-3:] == ANSWER.splitlines()
    assert len(lines) < 25
    (log,) = [line.rpartition(" ")[2] for line in lines if "asv's output" in line]
    assert (tmp_path / log).read_text() == "asv\n" * 150


@pytest.mark.parametrize(
    ("fails", "named"),
    [
        ({"run": 1}, "exit status 1 of highway-bench run"),
        ({"history_run": 1}, "exit status 1 of highway-bench history run"),
        ({"run": 1, "history_run": 1}, "exit status 1 of highway-bench run and of highway-bench history run"),
    ],
)
def test_failed_cells_and_the_exit_status_are_in_the_last_lines(bench: Any, fails: dict[str, int], named: str) -> None:
    status, commands, lines = bench(**fails)
    assert status == 1
    assert commands == ["run", "report", "history run", "history publish"]
    assert lines[-4:] == [*ANSWER.splitlines(), f"nox > {named}"]


def test_a_run_that_measured_nothing_ends_at_once_with_what_it_printed(bench: Any) -> None:
    status, commands, lines = bench(run=3)
    assert (status, commands) == (3, ["run"])
    assert lines[-3:] == ANSWER.splitlines()


def test_no_point_in_the_history_is_no_failure(bench: Any) -> None:
    status, commands, lines = bench(history_run=2)
    assert (status, commands) == (None, ["run", "report", "history run"])
    assert lines[-3:] == ANSWER.splitlines()


def test_a_plan_is_printed_and_nothing_else(bench: Any) -> None:
    assert bench("--dry-run")[1] == ["run"]
