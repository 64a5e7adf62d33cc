"""A maintainer's package with a C extension and a generated version: built on each side, counted, and blamed."""

import pytest
from typer.testing import CliRunner

from highway_bench.cli import app
from highway_bench.history import builds as building
from highway_bench.history.builds import NotBuilt, build, check_import
from highway_bench.history.compare import compare_counts
from highway_bench.history.init import write_history
from highway_bench.history.paths import Paths
from highway_bench.history.points import follow_points
from highway_bench.history.suite.series import HistoryCell
from tests.history.own_package import OwnPackage

pytestmark = pytest.mark.slow
MIXER, GATED = (HistoryCell("damped", family, 4, size) for family, size in (("mixer", ""), ("gated-mlp", "64x512")))


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    one = OwnPackage.make(tmp_path_factory.mktemp("own") / "package")
    write_history(one.root)
    one.commit("A history")
    return one


@pytest.fixture(autouse=True)
def imports(monkeypatch):
    """Other tests' packages are not imported before they are measured; this one is."""
    monkeypatch.setattr(building, "check_import", check_import)


def compare(package, message, *words):
    """``history compare --strict`` of a commit, by its message, and the one before it."""
    commit = package.named(message)
    arguments = [f"{commit}^", commit, "--strict", "--device", "cpu", "--root", str(package.root)]
    return CliRunner().invoke(app, ["history", "compare", *arguments, *words])


def test_a_commit_is_built_with_its_extension_and_its_version(package):
    folder = build(Paths.of(package.root), package.named("GELU"), "first")
    assert list(folder.glob("mine/_fast*.so"))
    assert "version = " in (folder / "mine/_version.py").read_text()
    assert "gelu" in (folder / "mine/layers.py").read_text()


def test_counts_of_own_layers_are_compared_at_both_sizes(package):
    paths, bad = Paths.of(package.root), package.named("Sigmoid on top")
    changed = compare_counts(paths, f"{bad}^", bad, [MIXER, MIXER._replace(size="64x512"), GATED])
    assert {(one.cell.family, one.cell.size) for one in changed} == {("mixer", ""), ("mixer", "64x512")}
    rises = {one.series.name: one.after / one.before for one in changed}
    assert rises["saved_bytes"] == pytest.approx(1.727, abs=0.01)
    assert not compare_counts(paths, "HEAD~1", "HEAD", [MIXER, GATED])


def test_a_commit_that_does_not_import_is_one_line(package):
    broken = compare(package, "Broken import")
    assert broken.exit_code == 1
    (line,) = broken.stderr.splitlines()
    assert package.named("Broken import")[:8] in line
    assert "'versions'" in line


def test_a_commit_that_cannot_be_built_is_one_line(package):
    broken = compare(package, "C that does not compile")
    assert broken.exit_code == NotBuilt.exit_status == 4
    (line,) = broken.stderr.splitlines()
    assert package.named("C that does not compile")[:8] in line
    assert "fast.c:2" in line


def test_a_point_of_a_branch_follows_the_commit_that_squashed_it(package, write_point):
    tip, squashed = package.squash()
    paths = Paths.of(package.root)
    write_point(paths.results / "cpu", tip, {"blocks.Families.track_flop": ([1.0, 2.0], 0)})
    (line,) = follow_points(paths)
    assert f"{tip[:8]} to {squashed[:8]}" in line
    assert [path.name[:8] for path in paths.results.glob("cpu/*-py*.json")] == [squashed[:8]]
