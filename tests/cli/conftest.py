"""What the command line's tests share: a working directory of their own, and two ways to call a command."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import highway_bench
from highway_bench.cli import app
from highway_bench.execution.engines import engines
from highway_bench.history.compare import Compared, ValueChange
from highway_bench.history.gate import Culprit, GateFinding, GateReport, MissingSeries
from highway_bench.history.lines import SuspectedRegression, TrackedSeries
from highway_bench.history.machine import Machine
from highway_bench.history.measure import Measured
from highway_bench.history.points import Imported
from highway_bench.history.publish import Published
from highway_bench.history.suite.series import SERIES, HistoryCell, Suite
from highway_bench.history.verdicts import GateVerdict
from highway_bench.interactive.run import run
from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.results import Store, export
from tests.inline_engine import InlineEngine


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory, with no data folder, a cache of its own, and no data loaded by earlier tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # commands put it on the path; this takes it off again
    monkeypatch.delenv("HIGHWAY_BENCH_DATA", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    sentiment = sys.modules.get("highway_bench.data.sentiment")
    if sentiment is not None:
        sentiment._texts.cache_clear()
        sentiment._vocabulary.cache_clear()
        sentiment._load.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def invoke(here):
    """Call a command in this process, by its line in one part or several."""
    return lambda *parts: CliRunner().invoke(app, words_of(parts), prog_name="highway-bench")


@pytest.fixture
def shell(here):
    """Call a command as a shell would."""
    return lambda *parts: subprocess.run(
        [sys.executable, "-m", "highway_bench", *words_of(parts)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=environment(),
    )


def words_of(parts):
    return " ".join(map(str, parts)).split()


def environment():
    """That of a process that finds this package, wherever its tests were started."""
    here = str(Path(__file__).parents[2])
    return os.environ | {"PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}


def leaves(group, path=()):
    """Every command of ``group`` that is no group itself."""
    inner = getattr(group, "commands", None)
    if inner is None:
        return {" ".join(path)}
    return {leaf for name, command in inner.items() for leaf in leaves(command, (*path, name))}


@pytest.fixture
def inline(tmp_path):
    """The name of an engine that runs cells in this process."""
    engines.register("inline", lambda workers: InlineEngine(tmp_path), module=__name__)
    yield "inline"
    engines.unregister("inline")


@pytest.fixture(scope="session")
def measured(tmp_path_factory):
    """A folder with a store of two cells, and its rows as files that could be committed."""
    folder = tmp_path_factory.mktemp("measured")
    path = folder / "reports/results.sqlite"
    engine = InlineEngine(tmp_path_factory.mktemp("jobs"))
    run("memory", profile="smoke", family="dense", block=["plain", "highway"], engine=engine, store=path)
    with Store(path, read_only=True) as opened:
        export(opened, folder / "docs/data/rows.parquet")
    return folder


@pytest.fixture
def store(here, measured):
    """That store where commands look for one by default, and its rows."""
    shutil.copytree(measured, here, dirs_exist_ok=True)


@pytest.fixture
def history(here, monkeypatch):
    """A history whose functions return results of every kind at once: what they do is tested elsewhere."""
    ratio = IntervalEstimate(1.5, 1.4, 1.6, 8)
    cell = HistoryCell("plain", "dense", 10)
    of = TrackedSeries(SERIES[0], cell, "m", "blocks.Depths.track_ratio('plain', 10)")
    finding = GateFinding(
        SuspectedRegression(of, 1.0, 1.5, "abc1234", "abc1233"), GateVerdict.REGRESSION, ratio, 0.1, "remark"
    )
    culprits = [Culprit("abc1234", "Slower", 2, 1, ("plain",))]
    verdict = GateReport(
        [finding], [MissingSeries(of, "failed")], 2, ["m"], lines=["a line"], load="some load", culprits=culprits
    )
    compared = Compared(cell, [1.5, 1.51, 1.52, 1.5, 1.49, 1.5], ([1.0], [1.5]), [2.6])
    given = {
        "machine.this_machine": Machine("cpu", {"machine": "m"}),
        "measure.measure_here": Measured("m", {}, ["nothing"], [], ["a line"], False),
        "measure.measure_range": Measured("m", {}, ["nothing"], [], ["a line"], False),
        "git.has_git": False,
        "points.import_results": Imported([here / "m.json"], ["a line"]),
        "init.write_history": [here / "asv.conf.json"],
        "site.write_site": ["a line"],
        "publish.publish": Published(here, ["m"], 3, ["a line"]),
        "gate.check": None,
        "gate.gate": verdict,
        "compare.compare_counts": [ValueChange(SERIES[3], cell, 2.0, 3.0)],
        "compare.compare": [compared, Compared(cell, reason="unknown block 'absent'")],
        "paths.Paths.suite": Suite(core=("highway", "plain"), families=("dense",)),
    }
    checkout = Path(__file__).parents[2]
    (here / "asv.conf.json").write_text((checkout / "asv.conf.json").read_text())
    (here / "highway_bench").symlink_to(Path(highway_bench.__file__).parent)
    for name, result in given.items():
        monkeypatch.setattr(f"highway_bench.history.{name}", lambda *_, result=result, **__: result)
