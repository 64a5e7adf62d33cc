"""A throw-away repository: a tiny package, and the real benchmarks, whose measurement is planted by each commit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import json5
import pytest
from filelock import FileLock

pytest.importorskip("asv", reason="the history needs asv: pip install highway-bench[history]")

from highway_bench.history.files import write_json
from highway_bench.history.machine import Machine, entry
from highway_bench.history.measure import Measured, measure_here
from highway_bench.history.paths import Paths
from highway_bench.history.suite.process import CellLacking, RequestFailed
from highway_bench.provenance.git import git_bytes

PROJECT = Path(__file__).resolve().parents[2]
MACHINE = "cpu-standin-2c"
PLANTED = """

import json as _json, random as _random
import current.history.suite.benchmarks as _suite
from current.history.suite.measuring import SeriesKey as _Key

def _planted(suite, device, *, quick):
    import highway_bench  # the measured commit's
    values = _json.loads(Path(highway_bench.__file__).with_name("values.json").read_text())
    found = {}
    for group in suite.groups:
        for series in group.series:
            for cell in suite.cells(series, quick=quick):
                here = values.get(cell.block)
                if here is None or not hasattr(highway_bench, "api"):
                    continue
                source = _random.Random(f"{cell}{series.name}{values['salt']}")
                value = here.get(series.name, 100)
                timed = series.name == "ratio"
                samples = [value * (1 + 2e-3 * source.random()) for _ in range(3)] if timed else [value]
                found[_Key(series.name, cell)] = "RuntimeError: planted" if here.get("broken") else samples
    return found

_suite.measure_point = _planted
"""
START = {
    "salt": 0,
    "plain": {"ratio": 1.0, "peak_bytes": 1000, "log_loss": 5.0},
    "highway": {"ratio": 2.0, "peak_bytes": 2000, "log_loss": 5.1},
}


class PlantedProcess:
    """Stands in for a process that measures a package: a step takes the commit's planted ratio in milliseconds."""

    started: ClassVar[list[str]] = []

    def __init__(self, path: Sequence[str], device: str, core: int, tree: Path | None = None) -> None:
        self.values = json.loads((Path(path[0]) / "highway_bench/values.json").read_text())
        self.started.append(path[0])

    def __enter__(self) -> PlantedProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def ask(self, request: str, **cell: Any) -> Any:
        if request in ("counts", "measured"):
            here = self.values.get(cell["block"], {})
            return {"flop": 7, "peak": here.get("peak_bytes"), "saved_activations": 5}
        if request == "prepare":
            if cell["block"] not in self.values:
                raise CellLacking(f"unknown block {cell['block']!r}")
            self.here = self.values[cell["block"]]
            if self.here.get("broken"):
                raise RequestFailed("RuntimeError: planted")
            return None
        self.number = getattr(self, "number", 0) + 1
        seconds = 0.1 * self.here["ratio"] * (1 + 1e-3 * (self.number % 3))
        return seconds, 1.1 * seconds


class Throwaway:
    """A repository in a folder, with the history's paths and a machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.values = json.loads(json.dumps(START))
        self.commits = self.git("rev-list", "--reverse", "--all").split()

    @classmethod
    def new(cls, root: Path) -> Throwaway:
        """A repository without a commit in ``root``, which must not exist."""
        for folder in ("highway_bench/blocks", "highway_bench/families"):
            (root / folder).mkdir(parents=True)
        shutil.copytree(
            PROJECT / "benches/history", root / "benches/history", ignore=shutil.ignore_patterns("__pycache__")
        )
        with (root / "benches/history/blocks.py").open("a", encoding="utf-8") as benches:
            benches.write(PLANTED)
        files = ("registry.py", "declared.py", "os_names.py", "errors.py", "history/__init__.py")
        for part in ("history/suite", "measure", *files):  # what the benchmarks use of this tree
            source, target = PROJECT / "highway_bench" / part, root / "highway_bench" / part
            target.parent.mkdir(exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)
        table = root / "highway_bench/history/suite/series.py"
        table.write_text(table.read_text().replace("(10, 50, 100)", "(10, 100)"))  # each value costs asv a process
        shutil.copyfile(PROJECT / ".gitignore", root / ".gitignore")
        conf = json5.loads((PROJECT / "asv.conf.json").read_text())
        conf["regressions_first_commits"] = {}  # they name this project's commits, which the new repository lacks
        subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
        repository = cls(root)
        repository.write("asv.conf.json", json.dumps(conf))
        repository.write("highway_bench/__init__.py", "api = True\n")
        repository.write("highway_bench/families/dense.py", '@register_family("dense")\nclass Dense: pass\n')
        repository.write(
            "pyproject.toml",
            '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
            '[project]\nname = "highway-bench"\nversion = "0"\nreadme = "README.md"\n'
            '[tool.hatch.build.targets.wheel]\npackages = ["highway_bench"]\n',
        )
        repository.write("README.md", "A stand-in.\n")
        for name in ("plain", "highway"):
            repository.block(name)
        return repository

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
            f'@register_block("{name}", group="core")\nclass Block: pass\n',
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
        return measure_here(self.paths, self.machine, **options)


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory):
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
def throwaway(tmp_path):
    """A new repository for one test, with no commit."""
    return Throwaway.new(tmp_path / "repository")


@pytest.fixture(scope="session")
def write_point():
    """A function that writes an invented result file."""

    def write(folder, commit, rows, **fields):
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
def planted(tmp_path_factory):
    """Six measured commits: two alike, a slow-down, more memory, a block that stops training, and one without a
    change. A run makes them once, and each worker of pytest-xdist has a copy."""
    base = tmp_path_factory.getbasetemp()
    whole = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "planted"
    with FileLock(f"{whole}.lock"):
        if not whole.exists():
            plant(whole.with_suffix(".part"))
            whole.with_suffix(".part").rename(whole)
    return Throwaway(shutil.copytree(whole, tmp_path_factory.mktemp("planted") / "repository", symlinks=True))


@pytest.fixture
def copy(planted, tmp_path):
    """A copy of ``planted`` that a test may change."""
    one = Throwaway(shutil.copytree(planted.root, tmp_path / "copy", symlinks=True))
    one.values = json.loads((one.root / "highway_bench/values.json").read_text())
    return one


def plant(root):
    """The repository of ``planted`` in the folder ``root``."""
    repository = Throwaway.new(root)
    for changes in (
        {},
        {},
        {"highway": {"ratio": 3.0}},
        {"plain": {"peak_bytes": 1008}},
        {"highway": {"log_loss": 6.4}},
        {},
    ):
        repository.commit("change", **changes)
        repository.measure()


@pytest.fixture
def planted_processes(monkeypatch):
    """Comparisons use planted processes and commits' unbuilt files; the list has the folder of each that was
    started."""
    for module in ("highway_bench.history.compare", "highway_bench.history.suite.measuring"):
        monkeypatch.setattr(f"{module}.PackageProcess", PlantedProcess)
    monkeypatch.setattr("highway_bench.history.builds.build", unpacked)
    PlantedProcess.started = []
    return PlantedProcess.started


def unpacked(paths, commit, name):
    """A commit's files in a folder of their own."""
    folder = paths.working / name / commit
    folder.mkdir(parents=True, exist_ok=True)
    archive = git_bytes(paths.root, "archive", "--format=tar", commit)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def no_imports():
    """Planted packages are not imported before they are measured; ``own_package`` is."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("builds", "measure"):
            patch.setattr(f"highway_bench.history.{module}.check_import", lambda *_: None)
        yield
