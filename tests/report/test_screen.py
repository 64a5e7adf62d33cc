"""The first screen in a real Chromium: every choice, on a desk and on a phone, as its readers use it."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from highway_bench.frames.results import Results
from highway_bench.report.choice.answers import answers
from highway_bench.report.choice.lines import sentence
from highway_bench.report.choice.ranking import CRITERIA, depths_of, kinds_of, ranking
from highway_bench.report.choice.screen import overview, screen
from highway_bench.report.page import write_report
from tests.rows import frame_of, whole

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
SIZES = {"desk": (1440, 900, 8), "phone": (390, 844, 7)}
TRY_ALL = Path(__file__).with_name("try_all.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    results = Results(frame_of(whole(("plain", "highway", "pre-norm"), 5, ("dense",))))
    return write_report(results, tmp_path_factory.mktemp("screen")).page, results


@pytest.mark.parametrize("size", SIZES)
def test_every_choice_says_what_was_computed(page, size, tmp_path):
    path, results = page
    width, height, most = SIZES[size]
    tried = tmp_path / "index.html"
    text = path.read_text(encoding="utf-8").replace("</body>", f"<script>{TRY_ALL}</script></body>")
    tried.write_text(text, encoding="utf-8")
    frame = tmp_path / "frame.html"  # a window is at least 500 pixels wide, a frame is not
    frame.write_text(f'<iframe src="index.html" width="{width}" height="{height}" style="border:0"></iframe>')
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    options += ["--virtual-time-budget=60000", "--allow-file-access-from-files", "--window-size=1600,1200"]
    command = [str(BROWSER), *options, frame.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert "CONSOLE" not in done.stderr, done.stderr
    found = re.search(r'<pre id="tried">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-500:]
    result = json.loads(html.unescape(found.group(1)))
    assert result["width"] == width
    table = answers(results)
    for kind in kinds_of(table):
        depths = depths_of(table, kind)
        for what in CRITERIA:
            for depth in depths:
                one, shown = ranking(table, kind, depth, what), result["choices"][f"{kind.name}/{depth}/{what}"]
                assert shown["say"] == sentence([one], depth)
                names = [row["connection"] for row in one.rows]
                assert shown["names"] == names[: most if len(names) > most else None]
            between = result["choices"][f"{kind.name}/30/{what}"]
            assert between["columns"] == (2 if depths[0] < 30 < depths[-1] and 30 not in depths else 1)
    assert result["wide"] == []
    assert result["faint"] == []
    assert result["choices"]["mlp/50/held-out"]["lowest"] <= height
    assert result["focused"]
    assert 'hb.build("' in result["detail"]
    assert result["address"] == "#mlp/50/memory"
    known = [kind["depths"] for kind in screen(table)["kinds"]]
    assert result["every"] == sum(len(depth["rows"]) for depths in known for depth in depths)
    assert set(result["found"]["names"]) == {"pre-norm"}


def test_a_robust_choice_trains_most_often_of_what_is_decided():
    """2 of 2 is less sure than 8 of 9; what has too few seeds counts nowhere."""

    def at(depth, **states):
        rows = [
            {
                "connection": name,
                "place": state if state == "best" else "",
                "outcome": state,
                "seeds": 1,
                "differ": False,
            }
            for name, state in states.items()
        ]
        return SimpleNamespace(kind=SimpleNamespace(name="mlp", label="MLP"), depth=depth, rows=rows)

    often = [at(depth, sure="best", plain="fails") for depth in range(8)]
    found = overview([*often, at(8, sure="slow", rare="best"), at(9, rare="best", sure="undecided")])
    assert found["robust"] == {"name": "sure", "measured": 9, "trains": 8, "near": 8}
    assert overview([at(1, plain="fails")])["robust"] is None
