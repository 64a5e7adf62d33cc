"""The session bench, whose answer comes last, and the session release, which tags only what passed."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nox
import pytest

ROOT = Path(__file__).resolve().parents[1]
ANSWER = "Which connection to use\nfailed: memory highway dense: oom\n2 cells: 1 ok, 1 oom\n"


class Session:
    """Stands in for nox's: each command prints, and those in ``fails`` end with their status."""

    venv_backend = "none"

    def __init__(self, posargs: list[str], fails: dict[str, int], prints: Any) -> None:
        self.posargs, self.fails, self.prints = posargs, fails, prints
        self.commands = []

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
def noxfile():
    """This checkout's noxfile, which reads pyproject.toml where it is loaded."""
    spec = importlib.util.spec_from_file_location("noxfile_of_this_checkout", ROOT / "noxfile.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as context:
        context.chdir(ROOT)
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def bench(noxfile, tmp_path, monkeypatch, capsys):
    """Runs the session in a folder of its own, and returns its status, its commands and what it printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()

    def run(*words, **fails):
        session = Session(list(words), {name.replace("_", " "): one for name, one in fails.items()}, sys.stdout.write)
        try:
            status = noxfile.bench.func(session)
        except (SystemExit, nox.command.CommandFailed) as error:
            status = getattr(error, "code", None) or error.return_code
        return status, session.commands, capsys.readouterr().out.splitlines()

    return run


def test_the_answer_comes_last(bench, tmp_path):
    status, commands, lines = bench()
    assert status is None
    assert commands == ["run", "report", "history run", "history publish"]
    assert lines[-3:] == ANSWER.splitlines()
    assert len(lines) < 25
    (log,) = [line.rpartition(" ")[2] for line in lines if "asv's output" in line]
    assert (tmp_path / log).read_text() == "asv\n" * 150


@pytest.mark.parametrize("fails", [("run",), ("history_run",), ("run", "history_run")])
def test_failed_cells_and_the_exit_status_are_in_the_last_lines(bench, fails):
    status, commands, lines = bench(**dict.fromkeys(fails, 1))
    assert status == 1
    assert commands == ["run", "report", "history run", "history publish"]
    assert lines[-4:-1] == ANSWER.splitlines()
    assert [name.replace("_", " ") for name in fails] == re.findall(r"highway-bench ((?:history )?run)", lines[-1])


def test_a_run_that_measured_nothing_ends_at_once_with_what_it_printed(bench):
    status, commands, lines = bench(run=3)
    assert (status, commands) == (3, ["run"])
    assert lines[-3:] == ANSWER.splitlines()


def test_no_point_in_the_history_is_no_failure(bench):
    status, commands, lines = bench(history_run=2)
    assert (status, commands) == (None, ["run", "report", "history run"])
    assert lines[-3:] == ANSWER.splitlines()


def test_a_plan_is_printed_and_nothing_else(bench):
    assert bench("--dry-run")[1] == ["run"]


def test_every_proof_is_there(noxfile):
    modules = {module for module, _ in noxfile.PROOFS.values()} - {"pytest"}
    assert all(importlib.util.find_spec(module) for module in modules)
    with pytest.raises(SystemExit):
        noxfile.proof.func(Session(["other"], {}, sys.stdout.write))


class ReleaseSession(Session):
    """Runs git; the tests of a release are not run, and the last of them ends with ``status``."""

    venv_backend = "virtualenv"
    status = 0

    def run(self, *words: str, silent: bool = False, **options: Any) -> str:
        if words[0] == "git":
            return subprocess.run(words, capture_output=True, text=True, check=True).stdout
        self.commands.append(" ".join(words[1:]))
        if self.status and "tests" in words:
            raise nox.command.CommandFailed("Returned code 1", return_code=self.status)
        return ""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with what a release reads, and one commit."""
    monkeypatch.chdir(tmp_path)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "tests")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "tests@localhost")
    shutil.copy(ROOT / "CITATION.cff", tmp_path)
    (tmp_path / "highway_bench").mkdir()
    (tmp_path / "highway_bench/__init__.py").write_text('__version__ = "9.8.7"\n')
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "one"]):
        subprocess.run(["git", *words], check=True)
    return tmp_path


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


def test_a_release_is_tagged_only_where_that_is_asked_for(noxfile, checkout, monkeypatch):
    monkeypatch.setattr(noxfile, "check_archive", lambda session, kind: session.commands.append(kind))
    session = ReleaseSession([], {}, sys.stdout.write)
    noxfile.release.func(session)
    page = "-m nox -s tests -- -m slow tests/interactive/test_notebook.py -k page"
    assert session.commands == ["wheel", "sdist", "-m nox -s versions", page]
    assert (git("tag"), git("status", "--porcelain"), git("rev-list", "--count", "HEAD")) == ("", "", "1")
    tested = git("rev-parse", "HEAD")
    noxfile.release.func(ReleaseSession(["--tag"], {}, sys.stdout.write))
    assert (git("tag"), git("status", "--porcelain")) == ("v9.8.7", "")
    assert git("rev-parse", "v9.8.7^{commit}~1") == tested
    lines = (checkout / "CITATION.cff").read_text().splitlines()
    assert lines[lines.index("version: 9.8.7") :][:3] == [
        "version: 9.8.7", f"date-released: {datetime.now(UTC).date()}", f"commit: {tested}"]  # fmt: skip
    assert sum(line.startswith(("version:", "date-released:", "commit:")) for line in lines) == 3
    with pytest.raises(SystemExit):
        noxfile.release.func(ReleaseSession(["--tag"], {}, sys.stdout.write))


@pytest.mark.parametrize("why", ["a changed file", "failing tests"])
def test_nothing_is_tagged(noxfile, checkout, why, monkeypatch):
    monkeypatch.setattr(noxfile, "check_archive", lambda *_: None)
    session = ReleaseSession(["--tag"], {}, sys.stdout.write)
    if why == "a changed file":
        (checkout / "CITATION.cff").write_text("changed")
    else:
        session.status = 1
    with pytest.raises((SystemExit, nox.command.CommandFailed)):
        noxfile.release.func(session)
    assert git("tag") == ""
    assert git("rev-list", "--count", "HEAD") == "1"
