"""What cannot work is one line and exit status 2, before anything is measured."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.runner import run_cells
from highway_bench.results import Store

RUN = ("run", "cost", "--profile", "smoke", "--family", "dense", "--block", "plain")


def command(environment: dict[str, str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    given = [sys.executable, "-m", "highway_bench", *words]
    return subprocess.run(given, capture_output=True, text=True, cwd=folder, env=environment, timeout=600)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line with which a command was refused."""
    lines = [
        line for line in done.stderr.splitlines() if not re.match(r"\[20[-0-9]+ ", line)
    ]  # those of Ray's libraries
    assert (done.returncode, done.stdout, len(lines)) == (2, "", 1), done.stdout + done.stderr
    return lines[0]


def test_a_command_on_the_cluster(cluster: Any, environment: dict[str, str], tmp_path: Path) -> None:
    done = command(environment, tmp_path, *RUN, "--engine", "ray", "--address", cluster.address, "--json")
    assert done.returncode == 0, done.stderr
    assert '"failures": []' in done.stdout


def test_a_node_with_another_torch(cluster: Any, environment: dict[str, str], tmp_path: Path) -> None:
    torch = tmp_path / "old" / "torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").touch()
    (torch / "version.py").write_text('__version__ = "2.3.4+cpu"\n', encoding="utf-8")
    paths = os.pathsep.join([str(torch.parent), environment["PYTHONPATH"]])
    other = cluster.add_node(num_cpus=1, env_vars={"PYTHONPATH": paths})
    try:
        line = refusal(command(environment, tmp_path, *RUN, "--engine", "ray"))
    finally:
        cluster.remove_node(other)
    assert "torch 2.3.4, and this command" in line
    assert line.endswith("install the same")


def test_a_cluster_with_another_ray(ray_environment: None) -> None:
    """The text is that of the Ray which is installed."""
    from ray._private.utils import check_version_info

    from highway_bench.execution.engines._cluster_nodes import first_line

    with pytest.raises(RuntimeError) as caught:
        check_version_info({"ray_version": "2.1.0", "python_version": "3.9.1"}, "127.0.0.1")
    assert re.fullmatch(
        r"it has Ray 2\.1\.0 with Python 3\.9\.1, and this command Ray [\d.]+ with Python [\d.]+: install the same",
        first_line(caught.value),
    )


def test_no_cluster(ray_environment: None, environment: dict[str, str], tmp_path: Path) -> None:
    given = {name: value for name, value in environment.items() if name != "RAY_ADDRESS"}
    line = refusal(command(given, tmp_path, *RUN, "--engine", "ray", "--address", "127.0.0.1:1"))
    assert "no connection to the Ray cluster at 127.0.0.1:1" in line


@pytest.mark.parametrize("address", ["local", "ray://127.0.0.1:10001"])
def test_an_address_of_another_kind(
    ray_environment: None, environment: dict[str, str], tmp_path: Path, address: str
) -> None:
    line = refusal(command(environment, tmp_path, *RUN, "--engine", "ray", "--address", address))
    assert "write HOST:PORT" in line


@pytest.mark.parametrize("token", ["", "another-token-" + "1" * 24])
def test_a_command_without_the_token(cluster: Any, environment: dict[str, str], tmp_path: Path, token: str) -> None:
    given = environment | {"RAY_AUTH_TOKEN": token, "HOME": str(tmp_path)}
    assert "token" in refusal(command(given, tmp_path, *RUN, "--engine", "ray")).lower()


def test_an_address_for_another_engine(environment: dict[str, str], tmp_path: Path) -> None:
    assert "needs --engine ray" in refusal(command(environment, tmp_path, *RUN, "--address", "127.0.0.1:6379"))


def test_a_machine_that_no_node_is(
    cluster: Any, fakes: tuple[str, ...], store: Store, cell: Callable[..., Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    from highway_bench.execution.engines import cluster as engine
    from highway_bench.provenance import Identity

    monkeypatch.setattr(engine, "identity", lambda device: Identity("cpu-other-1c", None, "2.13.0+cpu"))
    with pytest.raises(BadInput, match=r"no node matches this machine \(cpu-other-1c"):
        run_cells([cell(task="fake-timing")], store, plugins=fakes, engine="ray")


def test_a_device_that_no_node_has(
    cluster: Any, fakes: tuple[str, ...], store: Store, cell: Callable[..., Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    from highway_bench.execution import runner, schedule
    from highway_bench.provenance import identity

    for module in (runner, schedule):  # as if this machine had one
        monkeypatch.setattr(module, "identity", lambda device: identity())
    with pytest.raises(BadInput, match="no node of the cluster has a GPU"):
        run_cells([cell().but(device="cuda")], store, plugins=fakes, engine="ray")


def test_a_module_that_is_no_file(
    cluster: Any, fakes: tuple[str, ...], store: Store, cell: Callable[..., Cell], tmp_path: Path
) -> None:
    from highway_bench.execution.engines.cluster import module_path

    with pytest.raises(BadInput, match="cannot be sent to a cluster"):
        module_path("a_module_that_is_nowhere")
