"""A history in a package of one's own, and the pages as one static site."""

import re
from pathlib import Path

import pytest

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.asv_pages import arrange
from highway_bench.history.init import BASELINES, write_history
from highway_bench.history.paths import Paths
from highway_bench.history.site import write_site
from highway_bench.history.suite.series import SERIES, Judged

PROJECT = '[project]\nname = "mine"\nversion = "1"\n'
BLOCKS = '[project.entry-points."highway_bench.blocks"]\nmy-gate = "mine.gate"\n'
LAYERS = '[project.entry-points."highway_bench.families"]\nmy-layer = "mine.layer"\nanother = "mine.other"\n'
UNNAMED = (
    "",
    '[project]\nversion = "1"',
    'project = ["name"]',
    PROJECT + '\nentry-points = "x"',
    PROJECT + '\nentry-points = {"highway_bench.blocks" = "x"}',
    '[project]\nname = "ÿ"',
)


def test_a_package_follows_the_blocks_that_it_names(tmp_path):
    (tmp_path / "pyproject.toml").write_text(PROJECT + BLOCKS)
    (tmp_path / ".gitignore").write_text("*.pyc")  # no line end
    assert [str(path.relative_to(tmp_path)) for path in write_history(tmp_path)] == [
        "asv.conf.json",
        "benches/history/__init__.py",
        "benches/history/blocks.py",
        ".gitignore",
    ]
    paths = Paths.of(tmp_path)
    assert paths.suite().core == ("my-gate",)
    assert paths.suite().stacked == "dense"
    assert paths.configuration()["project"] == "mine"
    assert (tmp_path / ".gitignore").read_text().splitlines() == [
        "*.pyc",
        "/reports/asv/.working/",
        "/reports/asv/html/",
        "/reports/asv/results/benchmarks.json",
        "/reports/site/",
    ]
    with pytest.raises(BadInput, match="would be overwritten"):
        write_history(tmp_path)


def test_a_package_of_layers_follows_them_in_the_common_connections(tmp_path):
    (tmp_path / "pyproject.toml").write_text(PROJECT + LAYERS)
    write_history(tmp_path)
    suite = Paths.of(tmp_path).suite()
    assert (suite.core, suite.families, suite.stacked) == (BASELINES, ("another", "my-layer"), "another")
    (ratio,) = [series for series in SERIES if series.judged is Judged.TIMED]
    timed = [cell for cell in suite.cells(ratio, quick=True) if cell.block == "plain"]
    assert [(cell.family, cell.depth, cell.size) for cell in timed] == [
        ("my-layer", 4, ""),
        ("another", 10, ""),
        ("another", 50, ""),
        ("another", 4, "64x512"),
        ("my-layer", 4, "64x512"),
    ]
    assert str(timed[0]) == "my-layer · plain · 4 layers"
    assert timed[-1].described("cpu").endswith("64 × 512")
    assert timed[0].described("cuda").endswith("1024 × 64")
    assert not [cell for cell in suite.on("cuda").cells(ratio, quick=True) if cell.size]
    assert suite.groups[0].label == "4 layers · 64 × 16, on a GPU 1024 × 64"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no pyproject.toml"),
        *((text, "with a named") for text in UNNAMED),
        (PROJECT, "names no block"),
    ],
)
def test_what_a_package_lacks_is_one_line(tmp_path, text, message):
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text, encoding="latin-1")
    with pytest.raises(BadInput, match=message):
        write_history(tmp_path)
    assert not (tmp_path / "asv.conf.json").exists()


def test_the_configuration_is_like_this_projects(tmp_path):
    (tmp_path / "pyproject.toml").write_text(PROJECT + BLOCKS)
    write_history(tmp_path)
    ours = Paths.of(Path(__file__).resolve().parents[2]).configuration()
    theirs = Paths.of(tmp_path).configuration()
    different = {"project", "regressions_first_commits"}
    assert {name: ours[name] for name in ours.keys() - different} == {
        name: theirs[name] for name in theirs.keys() - different
    }


def test_a_site_has_every_page_and_links_them_relatively(tmp_path):
    reports, site = tmp_path / "reports", tmp_path / "site"
    with pytest.raises(NothingMeasured):
        write_site(reports, site, "mine")
    for page in ("page/index.html", "asv/html/index.html"):
        (reports / page).parent.mkdir(parents=True)
        (reports / page).write_text(page)
    (line,) = write_site(reports, site, "mine & ours")
    assert "docs" in line
    page = (site / "index.html").read_text()
    assert "mine &amp; ours" in page
    links = re.findall(r'href="([^"]+)"', page)
    assert links == ["page/index.html", "asv/html/index.html"]
    assert [(site / link).read_text() for link in links] == links
    (reports / "page/index.html").write_text("newer")
    write_site(reports, site, "mine")
    assert (site / "page/index.html").read_text() == "newer"
    (reports / "page/broken").symlink_to("nowhere")
    with pytest.raises(BadInput, match="broken"):
        write_site(reports, site, "mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    with pytest.raises(BadInput, match="other files"):
        write_site(reports, tmp_path / "other", "mine")
    with pytest.raises(BadInput, match="cannot write"):
        write_site(reports, tmp_path / "other/file", "mine")
    for inside in ("page", "page/site", "asv/html/site"):
        with pytest.raises(BadInput, match="is copied"):
            write_site(reports, reports / inside, "mine")


def test_pages_lead_with_ratios_and_counts_and_label_some_commits():
    names = sorted(f"blocks.Depths.{series.benchmark}" for series in SERIES)
    index = {
        "benchmarks": {name: {} for name in names},
        "revision_to_hash": {str(number): f"{number:03d}00000" for number in range(100)},
        "tags": {},
    }
    arrange(index, {f"{number:03d}00000" for number in range(0, 100, 2)})
    assert [name.rpartition(".")[2] for name in index["benchmarks"]] == [series.benchmark for series in SERIES]
    assert index["tags"]["0000000"] == 0
    assert 2 <= len(index["tags"]) <= 9
    assert all(revision % 2 == 0 for revision in index["tags"].values())
