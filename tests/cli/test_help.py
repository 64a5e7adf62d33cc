"""Help: an example for every command, and nothing heavy loaded for it."""

import inspect
import re
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command

import highway_bench as hb
from highway_bench.blocks import blocks
from highway_bench.cli import app
from highway_bench.cli.run import run


def commands(group, path=()):
    found = [path]
    for name, command in getattr(group, "commands", {}).items():
        found += commands(command, (*path, name))
    return found


def examples(command):
    """What the help of ``command`` and of those in it shows behind 'Example: highway-bench'."""
    inner = getattr(command, "commands", {}).values()
    own = (command.epilog or "").partition("Example: highway-bench ")[2]
    return list(dict.fromkeys([own, *(example for one in inner for example in examples(one))]))


COMMANDS = commands(get_command(app))
TINY = {
    "run": ["--dry-run"],
    "reproduce": ["--dry-run"],
    "enter": ["--dry-run"],
    "check": ["--family", "dense"],
    "serve": ["--no-browser"],
    "advise": ["--dry-run"],
    "peers": ["--dry-run"],
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_an_example(command, invoke):
    shown = invoke(*command, "--help")
    assert shown.exit_code == 0
    assert f"Example: highway-bench {' '.join(command[:1])}" in " ".join(shown.stdout.split())


@pytest.mark.parametrize("example", examples(get_command(app)))
def test_examples_run(example, invoke, here, store, history, monkeypatch):
    """As they are shown, but for an option that leaves the work away; the history is a stand-in."""
    monkeypatch.setattr("socketserver.BaseServer.serve_forever", lambda _: None)
    words = shlex.split(example)
    if words[0] in ("check", "enter"):
        assert invoke("new-block", "my-gate").exit_code == 0
    if words[0] == "serve":
        assert invoke("report").exit_code == 0
    done = invoke(*words, *TINY.get(words[0], []))
    blocks.unregister("my-gate")  # the example's plug-in registers it in this process
    sys.modules.pop("my_gate", None)
    regressed = words[:2] == ["history", "gate"]  # as the stand-in says
    assert done.exit_code == regressed, done.output


def test_the_recipes_of_the_help_run(invoke, monkeypatch, tmp_path):
    """Each K=V that the help of --recipe names, and all of them at once, over the default profile."""
    monkeypatch.chdir(tmp_path)
    shown = " ".join(invoke("run", "--help").stdout.split())
    examples = re.findall(r"\w+=[\d.]+", shown.partition("Recipe words")[2].partition("--threads")[0])
    assert len(examples) > 1
    for words in (*([one] for one in examples), examples):
        options = [part for word in words for part in ("--recipe", word)]
        done = invoke("run", "--block", "plain", "--family", "dense", "--device", "cpu", *options, "--dry-run")
        assert (done.exit_code, done.stderr) == (0, "")


def test_help_loads_nothing_heavy():
    code = f"""
import contextlib, io, sys
from highway_bench.cli import app
for command in {COMMANDS}:
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        app([*command, "--help"])
print(*{{"torch", "numpy", "pandas"}} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_version(invoke):
    shown = invoke("--version")
    assert (shown.exit_code, shown.stdout) == (0, f"highway-bench {hb.__version__}\n")


@pytest.mark.parametrize("words", [["frobnicate"], ["run", "--depth", "ten"], ["run", "--frob"], ["show"]])
def test_usage_errors(words, invoke):
    done = invoke(*words)
    assert done.exit_code == 2
    assert "Error: " in done.stderr


def test_options_are_the_words_of_the_api():
    """One vocabulary: what ``run`` takes on the command line, the Python API takes under the same name."""
    of_commands = {"dry_run", "strict", "address", "log_file", "details", "json"}
    of_python = inspect.signature(hb.run).parameters.keys() - {"progress", "trials"}
    for name in inspect.signature(run).parameters.keys() - of_commands:
        assert {name, f"{name}s"} & of_python
    assert len(of_python) == len(inspect.signature(run).parameters) - len(of_commands)


def test_typer_was_told_no_pretty_tracebacks():
    """A bug shows itself whole, without the values of variables."""
    assert not app.pretty_exceptions_enable
