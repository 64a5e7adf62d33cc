"""The pages in a real browser, with no network: graphs are drawn, machines switch, regressions open, nothing fails."""

import html
import http.client
import json
import os
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from highway_bench.cli.stores import serve
from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.files import MACHINE, read_json, result_paths, write_json, write_text
from highway_bench.history.publish import publish
from highway_bench.history.site import HOST, address, link_report, server

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
GPU = "h100-standin"
# Opens asv's page in a frame, does what a person would do, and leaves what it saw in its own document.
PROBE = """<!doctype html><meta charset="utf-8"><body><iframe width=1200 height=800></iframe><pre id=seen></pre><script>
const frame = document.querySelector("iframe"), seen = {};
const wait = ms => new Promise(done => setTimeout(done, ms));
async function until(test) { for (let i = 0; i < 100; i++) { if (test()) return true; await wait(50); } return false; }
const page = () => frame.contentDocument;
function ink() {   // coloured pixels of the graph: axes and grid are grey
  let count = 0;
  for (const canvas of page().querySelectorAll("#main-graph canvas.flot-base")) {
    const copy = Object.assign(document.createElement("canvas"), {width: canvas.width, height: canvas.height});
    const pen = copy.getContext("2d", {willReadFrequently: true});
    pen.drawImage(canvas, 0, 0);
    const data = pen.getImageData(0, 0, copy.width, copy.height).data;
    for (let i = 0; i < data.length; i += 4)
      if (data[i + 3] > 100 && Math.max(data[i], data[i+1], data[i+2]) - Math.min(data[i], data[i+1], data[i+2]) > 60)
        count++;
  }
  return count;
}
function drawn() {   // equal lines may be of a grey block
  const plot = frame.contentWindow.$("#main-graph").data("plot");
  return plot && plot.getData().some(series => series.data.some(point => point[1] !== null));
}
const ticks = () => page().querySelector("#main-graph").textContent;   // what the axes say
const tokens = () => [...page().querySelectorAll("#graphdisplay-navigation a.btn")].map(one => one.textContent.trim());
const click = text => [...page().querySelectorAll("#graphdisplay-navigation a.btn")]
  .find(one => one.textContent.trim() == text).click();
async function main() {
  frame.contentWindow.location.replace("/asv/html/index.html");
  await until(() => page() && page().querySelectorAll("#summarygrid-display a").length);
  seen.tiles = page().querySelectorAll("#summarygrid-display a").length;
  seen.blocks = {};
  for (const block of BLOCKS) {
    frame.contentWindow.location.hash =
      `#blocks.Depths.track_ratio?machine=${MACHINES[0]}&p-block='${block}'&p-depth=10`;
    await wait(300);
    await until(() => ink() > 0);
    seen.blocks[block] = ink();
  }
  seen.title = page().querySelector("#title").textContent;
  seen.empty = [];
  for (const name of Object.keys(frame.contentWindow.$.asv.main_json.benchmarks)) {
    frame.contentWindow.location.hash = `#${name}`;
    await wait(300);
    if (!await until(drawn) || page().querySelector("#error.in")) seen.empty.push(name);
  }
  frame.contentWindow.location.hash = `#blocks.Depths.track_ratio?machine=${MACHINES[0]}&p-depth=10`;
  await wait(300);
  seen.buttons = tokens();
  seen.address = frame.contentWindow.location.hash;
  const before = ticks();
  click(MACHINES[1]); await wait(300);
  click(MACHINES[0]); await until(() => ink() > 0 && ticks() != before);
  seen.switched = [frame.contentWindow.location.hash, ink(), before, ticks()];
  frame.contentWindow.location.hash = "#/regressions";
  await until(() => page().querySelectorAll("#regressions-body table tbody tr").length);
  seen.regressions = page().querySelector("#regressions-body").textContent;
  document.getElementById("seen").textContent = JSON.stringify(seen);
}
main().catch(error => { document.getElementById("seen").textContent = JSON.stringify({error: String(error.stack)}); });
</script>"""


@contextmanager
def serving(reports):
    """A server of the pages in a folder."""
    with server(reports) as one:
        thread = threading.Thread(target=one.serve_forever, daemon=True)
        thread.start()
        yield one
        one.shutdown()
        thread.join()


@pytest.fixture
def pages(tmp_path):
    """A server of a report and a history; the first's folder is a link, as on another disk."""
    reports, disk = tmp_path / "reports", tmp_path / "disk"
    (reports / "asv/html").mkdir(parents=True)
    disk.mkdir()
    (reports / "page").symlink_to(disk)
    for page in (reports / "page/index.html", reports / "asv/html/index.html"):
        page.write_text("page")
    for file in (tmp_path / "secret.txt", reports / "results.sqlite", reports / "asv/secret.json"):
        file.write_text("secret")
    (disk / "secret.txt").symlink_to(tmp_path / "secret.txt")
    (disk / "loop").symlink_to(disk / "loop")
    with serving(reports) as one:
        yield one


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_pages_in_a_browser_without_network(copy, tmp_path):
    here, there = copy.paths.results / copy.machine.name, copy.paths.results / GPU
    shutil.copytree(here, there)
    machine = {"machine": GPU, "gpu": "NVIDIA H100"}
    for path in [*result_paths(there), there / MACHINE]:
        data = read_json(path)
        if path.name == MACHINE:
            data |= machine
        else:
            data["params"] |= machine
            row = data["results"]["blocks.Depths.track_ratio"]
            row[0] = [value and 3 * value for value in row[0]]  # another machine's graph must differ
        write_json(path, data)
    reasons = [line for line in publish(copy.paths).lines if "public networks" in line]
    if reasons:
        pytest.skip(reasons[0])
    machines, names = [copy.machine.name, GPU], ["highway", "plain"]
    probe = copy.root / "reports/page/probe.html"
    write_text(probe, PROBE.replace("MACHINES", json.dumps(machines)).replace("BLOCKS", json.dumps(names)))
    with serving(copy.root / "reports") as one:
        document, said = browse(f"{address(one)}page/probe.html", tmp_path)
    match = re.search(r"<pre id=\"seen\">(.*?)</pre>", document, re.DOTALL)
    assert match, document[-500:]
    seen = json.loads(html.unescape(match[1]))
    assert "error" not in seen, seen
    assert seen["tiles"] >= 15
    assert all(seen["blocks"][name] > 50 for name in names), seen
    assert {"NVIDIA H100", "none", *machines} <= set(seen["buttons"])
    assert GPU in seen["switched"][0]
    assert copy.machine.name not in seen["switched"][0]
    assert seen["switched"][1] > 50
    assert seen["switched"][2] != seen["switched"][3]
    assert "peak memory · plain · dense · 10 layers" in seen["regressions"]
    assert "track_" not in seen["regressions"]
    assert seen["title"] == "step time · dense"
    assert seen["empty"] == []  # neither an empty frame nor a dialog
    assert said == ""
    assert len(list((copy.paths.html / "vendor").glob("*LICEN*"))) >= 4


def browse(page, tmp_path):
    """A page's document after its scripts have run, and the browser's console output."""
    done = subprocess.run(
        [
            BROWSER,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}",
            "--enable-logging=stderr",
            "--window-size=1300,900",
            "--virtual-time-budget=60000",
            "--dump-dom",
            page,
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    said = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return done.stdout, said


def test_folders_lead_to_their_pages_and_nothing_else_is_served(pages):
    assert pages.server_address[0] == "127.0.0.1"
    for path in ("", "page", "page/", "asv/html", "asv/html/"):
        assert urllib.request.urlopen(address(pages) + path).read() == b"page"
    for path in (
        "results.sqlite",
        "asv/secret.json",
        "asv/html/../secret.json",
        "page/%2e%2e/asv/secret.json",
        "page/secret.txt",  # a link out of the pages
        "page/loop",
        "page/%00",
    ):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address(pages) + path)


@pytest.mark.parametrize(
    ("host", "status"),
    {
        "127.0.0.1": 200,
        "localhost:9999": 200,  # a tunnel
        "[::1]": 200,
        "evil.example": 421,
        "evil.example:80": 421,
        "127.0.0.1.evil.example": 421,
        "[": 421,
        "": 421,
    }.items(),
)
def test_other_names_of_this_machine_are_refused(pages, host, status):
    """A page elsewhere that lets its own name point here must not read these pages through a browser."""
    connection = http.client.HTTPConnection(HOST, pages.server_address[1], timeout=60)
    connection.putrequest("GET", "/page/index.html", skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()


@pytest.mark.parametrize(
    ("error", "heard"), [(BrokenPipeError, False), (ConnectionResetError, False), (ValueError, True)]
)
def test_a_reader_who_leaves_is_no_error(pages, capsys, error, heard):
    try:
        raise error("amid a page")
    except error:
        pages.handle_error(None, ("127.0.0.1", 1))
    assert ("amid a page" in capsys.readouterr().err) == heard


def test_the_link_to_the_report_is_put_there_once_both_are(tmp_path):
    page, report = tmp_path / "asv/html/index.html", tmp_path / "page/index.html"
    write_text(page, '<ul><li id="nav-li-" class="active">Benchmarks</li></ul>')
    link_report(page)
    assert "Report" not in page.read_text()
    write_text(report, "x")
    for _ in range(2):
        link_report(page)
        assert page.read_text().count("../../page/index.html") == 1


def test_the_browser_finds_pages_served(tmp_path, monkeypatch):
    write_text(tmp_path / "page/index.html", "x")
    seen, servers = [], []

    def browse(where):
        try:
            seen.append(urllib.request.urlopen(where, timeout=60).read())
        finally:
            threading.Thread(target=servers[0].shutdown).start()  # as Ctrl-C does; it would wait for itself here

    monkeypatch.setattr(
        "highway_bench.history.site.server", lambda *given: servers.append(server(*given)) or servers[0]
    )
    monkeypatch.setattr("webbrowser.open", browse)
    serve(tmp_path, 0, browser=True)
    assert seen == [b"x"]


def test_nothing_to_serve(tmp_path, pages):
    with pytest.raises(NothingMeasured):
        server(tmp_path)
    with pytest.raises(BadInput, match="port"):
        server(tmp_path / "reports", pages.server_address[1])
