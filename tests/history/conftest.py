"""A throw-away repository: a tiny package with the same entrance and the real benchmarks, whose values are planted.

Its clock is planted too: a step takes the seconds that its commit says, however busy the machine is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import json5
import pytest

pytest.importorskip("asv", reason="the history needs asv: pip install --group history")

from highway_bench.history import Paths
from highway_bench.history.files import write_json
from highway_bench.history.machine import Machine, entry
from highway_bench.history.measure import Measured, measure_here

PROJECT = Path(__file__).resolve().parents[2]
MACHINE = "cpu-standin-2c"
SERIES = r"track_|Depths\.time_step\(.*, 10\)"  # one timed depth: tests must be quick
ENTRANCE = """
import json, random, time
from pathlib import Path
VALUES = json.loads(Path(__file__).with_name("values.json").read_text())

class Clock:
    seconds = 0.0

time.perf_counter = lambda: Clock.seconds

class UnknownName(KeyError):
    pass

def of(block):
    if block not in VALUES:
        raise UnknownName(block)
    if VALUES[block].get("broken"):
        raise RuntimeError("planted")
    return VALUES[block]

class Work:
    def __init__(self, block):
        self.seconds = of(block)["step"] * 2e-2
    def step(self):
        Clock.seconds += self.seconds * random.uniform(0.99, 1.01)
    def restore(self):
        pass

def workload(task, block, family, depth, nominal_width, **fields):
    return Work(block)

def measured(task, block, family, depth, nominal_width, seed=0, **fields):
    here, source = of(block), random.Random(f"{block}{depth}{seed}{VALUES['salt']}")
    if task == "throughput":
        return {"slowdown": here["step"] * random.uniform(0.99, 1.01)}
    if task == "memory":
        return {"peak": here["peak"], "saved_activations": here["saved"]}
    loss = here["loss"] * (1 + 1e-3 * source.random())
    return {"final_loss": loss, "steps_to_threshold": 100 + source.randint(0, 3) if loss < 0.5 else None}
"""
TIMER = """

import time

_Series.timer = staticmethod(lambda: time.perf_counter())  # the planted clock, once the package is imported
"""
START = {
    "salt": 0,
    "plain": {"step": 1.0, "peak": 1000, "saved": 100, "loss": 0.2},
    "highway": {"step": 2.0, "peak": 2000, "saved": 200, "loss": 0.1},
}


class Throwaway:
    """A repository in a folder, with the history's paths and a machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commits: list[str] = []
        self.values: dict = json.loads(json.dumps(START))
        for folder in ("highway_bench/blocks", "highway_bench/families"):
            (root / folder).mkdir(parents=True)
        shutil.copytree(
            PROJECT / "benches/history", root / "benches/history", ignore=shutil.ignore_patterns("__pycache__")
        )
        with (root / "benches/history/blocks.py").open("a", encoding="utf-8") as benches:
            benches.write(TIMER)
        shutil.copyfile(PROJECT / ".gitignore", root / ".gitignore")
        conf = json5.loads((PROJECT / "asv.conf.json").read_text())
        conf["regressions_first_commits"] = {}  # they name this project's commits, which the new repository lacks
        self.write("asv.conf.json", json.dumps(conf))
        self.write("highway_bench/__init__.py", '__version__ = "0"\n')
        self.write("highway_bench/asv_api.py", ENTRANCE)
        self.write("highway_bench/families/dense.py", '@register_family("dense")\nclass Dense: pass\n')
        self.write(
            "pyproject.toml",
            '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
            '[project]\nname = "highway-bench"\nversion = "0"\nreadme = "README.md"\n'
            '[tool.hatch.build.targets.wheel]\npackages = ["highway_bench"]\n',
        )
        self.write("README.md", "A stand-in.\n")
        for name in ("plain", "highway"):
            self.block(name)
        self.git("init", "-q", "-b", "main")

    @property
    def paths(self) -> Paths:
        return Paths.of(self.root)

    @property
    def machine(self) -> Machine:
        return Machine("cpu", entry(MACHINE, None))

    def git(self, *words: str) -> str:
        who = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        done = subprocess.run(["git", "-C", str(self.root), *who, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text, encoding="utf-8")

    def block(self, name: str) -> None:
        self.write(
            f"highway_bench/blocks/{name.replace('-', '_')}.py",
            f'@register_block("{name}", core=True)\nclass Block: pass\n',
        )

    def commit(self, message: str, **changes: dict) -> str:
        """Commit changed values of blocks, and return the commit's hash."""
        for block, values in changes.items():
            self.values.setdefault(block, dict(START["plain"])).update(values)
        self.write("highway_bench/values.json", json.dumps(self.values))
        self.write("CHANGES.txt", f"{len(self.commits)} {message}\n")
        self.git("add", "-A")
        # Each commit a minute later: asv's pages order by date.
        when = f"2026-01-01T00:{len(self.commits):02d}:00+00:00"
        os.environ |= {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        self.git("commit", "-q", "-m", message)
        self.commits.append(self.git("rev-parse", "HEAD"))
        return self.commits[-1]

    def measure(self, **options) -> Measured:
        return measure_here(self.paths, self.machine, **{"series": [SERIES], **options})


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory):
    """A home folder for the tests: asv stores machines in the home folder, and only HOME can change its path."""
    before = {
        name: os.environ.get(name) for name in ("HOME", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE", "npm_config_cache")
    }
    home = tmp_path_factory.mktemp("home")
    if before["HOME"]:  # npm's settings and what it has fetched
        os.environ.setdefault("npm_config_cache", f"{before['HOME']}/.npm")
        npmrc = Path(before["HOME"], ".npmrc")
        if npmrc.is_file():
            shutil.copyfile(npmrc, home / ".npmrc")
    os.environ["HOME"] = str(home)
    yield
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@pytest.fixture
def throwaway(tmp_path: Path) -> Throwaway:
    """A new repository for one test, with no commit."""
    return Throwaway(tmp_path / "repository")


@pytest.fixture(scope="session")
def write_point() -> Callable[..., Path]:
    """A function that writes an invented result file."""

    def write(
        folder: Path, commit: str, rows: dict[str, tuple[list[float | None] | None, int]], **fields: object
    ) -> Path:
        """``rows`` are each benchmark's values, over *plain* and *highway*, with the time of their measurement; a
        missing machine's ``folder`` is created."""
        if not (folder / "machine.json").is_file():
            write_json(folder / "machine.json", entry(folder.name, None) | {"version": 1})
        machine = json.loads((folder / "machine.json").read_text())
        machine.pop("version")
        cells = {name: [values, [["'plain'", "'highway'"]], "1", started] for name, (values, started) in rows.items()}
        path = folder / f"{commit[:8]}-py3.11-torch2.13.json"
        write_json(
            path,
            {
                "commit_hash": commit,
                "env_name": "py3.11-torch2.13",
                "date": 0,
                "version": 2,
                "python": "3.11",
                "params": machine | {"python": "3.11", "torch": "2.13"},
                "requirements": {"torch": "2.13"},
                "result_columns": ["result", "params", "version", "started_at"],
                "results": cells,
            }
            | fields,
        )
        return path

    return write


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Throwaway:
    """Eight measured commits: three alike, a harmless one, a slow-down, more memory, a block that stops training, and
    one without a change."""
    repository = Throwaway(tmp_path_factory.mktemp("planted") / "repository")
    repository.commit("start")
    repository.measure()
    for changes in (
        {},
        {},
        {"plain": {"loss": 0.2000001}},
        {"highway": {"step": 6.0}},
        {"plain": {"peak": 1008}},
        {"highway": {"loss": 2.3}},
        {},
    ):
        if "plain" in changes and "loss" in changes["plain"]:
            repository.values["salt"] = 1  # other rounding: the seeds' losses differ in the fourth place
        repository.commit("change", **changes)
        repository.measure()
    return repository
