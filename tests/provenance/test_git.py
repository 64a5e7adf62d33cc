"""The commit of the running source, and git's errors in one line."""

import os
import subprocess

import pytest

from highway_bench.errors import BadInput
from highway_bench.provenance.git import git as ask
from highway_bench.provenance.git import reason_in, source_commit


def test_an_error_is_one_line(tmp_path):
    with pytest.raises(BadInput, match=r"^git rev-parse: [^\n]+$"):
        ask(tmp_path, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("fatal: dubious ownership\nCall:\n\n\tgit config x\n", "fatal: dubious ownership; git config x"),
        ("warning: old\nfatal: bad revision\nUse '--'", "fatal: bad revision"),
        ("one\ntwo", "two"),
        ("", "failed"),
    ],
)
def test_the_reason_is_gits_error_and_its_cure(written, reason):
    assert reason_in(written.splitlines()) == reason


def test_a_checkout_that_git_refuses(tmp_path, monkeypatch):
    """As one of another owner: its commit is unknown, and that is said."""
    (tmp_path / "package" / ".git").mkdir(parents=True)
    git = tmp_path / "git"
    git.write_text('#!/bin/sh\nprintf "fatal: detected dubious ownership\\n\\n\\tgit config x\\n" >&2; exit 128\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.warns(UserWarning, match="ownership; git config x"):
        assert source_commit(tmp_path / "package") is None


def test_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert source_commit(tmp_path) is None


def test_commit(tmp_path, monkeypatch):
    def git(*words):
        who = ["-c", "user.name=x", "-c", "user.email=x@x"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("a = 1\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("b = 1\n", encoding="utf-8")
    assert source_commit(package) is None  # no checkout
    git("init")
    git("add", "b.py")
    git("commit", "-m", "first")
    assert source_commit(package) is None  # lies in a checkout that does not track it
    git("add", "package")
    git("commit", "-m", "second")
    head = git("rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))  # as in a hook
    assert source_commit(package) == head
    (package / "notes.txt").write_text("", encoding="utf-8")
    (tmp_path / "new.py").write_text("", encoding="utf-8")
    (tmp_path / "b.py").write_text("b = 2\n", encoding="utf-8")
    assert source_commit(package) == head  # none of them is source of the package
    (package / "blocks").mkdir()
    new = package / "blocks" / "new.py"
    new.write_text("", encoding="utf-8")
    assert source_commit(package) == f"{head}+dirty"
    new.unlink()
    assert source_commit(package) == head
    (package / "a.py").write_text("a = 2\n", encoding="utf-8")
    assert source_commit(package) == f"{head}+dirty"
