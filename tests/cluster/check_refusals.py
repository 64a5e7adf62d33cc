"""What cannot work is one line and exit status 2, before anything is measured."""

import os
import re
import subprocess
import sys

import pytest

from highway_bench.errors import BadInput
from highway_bench.execution import runner, schedule
from highway_bench.execution.engines import ray as engine
from highway_bench.execution.engines._nodes import first_line
from highway_bench.execution.engines.ray import module_path
from highway_bench.provenance import Identity, identity
from tests.execution.processes import environment

RUN = ("run", "cost", "--profile", "smoke", "--family", "dense", "--block", "plain", "--engine", "ray")


@pytest.fixture
def command(ray_environment, tmp_path):
    """Gives a command further words, and changes its environment; ``None`` takes a variable out."""

    def run(*words, **changes):
        given = {name: value for name, value in (environment() | changes).items() if value is not None}
        line = [sys.executable, "-m", "highway_bench", *RUN, *words]
        return subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=given, timeout=600)

    return run


def refusal(done):
    """The one line with which a command was refused."""
    lines = [
        line for line in done.stderr.splitlines() if not re.match(r"\[20[-0-9]+ ", line)
    ]  # those of Ray's libraries
    assert (done.returncode, done.stdout, len(lines)) == (2, "", 1), done.stdout + done.stderr
    return lines[0]


def test_a_command_on_the_cluster(cluster, command):
    done = command("--address", cluster.address, "--json")
    assert done.returncode == 0, done.stderr
    assert '"failures": []' in done.stdout


def test_a_node_with_another_torch(cluster, command, tmp_path):
    torch = tmp_path / "old" / "torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").touch()
    (torch / "version.py").write_text('__version__ = "2.3.4+cpu"\n', encoding="utf-8")
    paths = os.pathsep.join([str(torch.parent), environment()["PYTHONPATH"]])
    other = cluster.add_node(num_cpus=1, env_vars={"PYTHONPATH": paths})
    try:
        line = refusal(command())
    finally:
        cluster.remove_node(other)
    assert "torch 2.3.4" in line


def test_a_cluster_with_another_ray(ray_environment):
    """The text is that of the Ray which is installed."""
    from ray._private.utils import check_version_info

    with pytest.raises(RuntimeError) as caught:
        check_version_info({"ray_version": "2.1.0", "python_version": "3.9.1"}, "127.0.0.1")
    assert re.search(r"Ray 2\.1\.0 with Python 3\.9\.1, .* Ray [\d.]+ with Python [\d.]+", first_line(caught.value))


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("local", "HOST:PORT"),
        ("ray://127.0.0.1:10001", "HOST:PORT"),
    ],
)
def test_no_cluster(command, address, says):
    assert says in refusal(command("--address", address, RAY_ADDRESS=None))


@pytest.mark.parametrize("token", ["", "another-token-" + "1" * 24])
def test_a_command_without_the_token(cluster, command, tmp_path, token):
    assert "token" in refusal(command(RAY_AUTH_TOKEN=token, HOME=str(tmp_path))).lower()


def test_an_address_for_another_engine(command):
    assert "--engine" in refusal(command("--engine", "local", "--address", "127.0.0.1:6379"))


def test_a_machine_that_no_node_is(run, cell, monkeypatch):
    monkeypatch.setattr(engine, "identity", lambda device: Identity("cpu-other-1c", None, "2.13.0+cpu"))
    with pytest.raises(BadInput, match="cpu-other-1c"):
        run([cell(task="fake-timing")])


def test_a_device_that_no_node_has(run, cell, monkeypatch):
    for module in (runner, schedule):  # as if this machine had one
        monkeypatch.setattr(module, "identity", lambda device: identity())
    with pytest.raises(BadInput, match="GPU"):
        run([cell().but(device="cuda")])


def test_a_module_that_is_no_file():
    with pytest.raises(BadInput, match="a_module_that_is_nowhere"):
        module_path("a_module_that_is_nowhere")
