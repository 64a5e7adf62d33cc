"""The report and asv's pages together: served to browsers on this machine only, or copied for any web host."""

from __future__ import annotations

import functools
import html
import posixpath
import re
import shutil
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput, writing
from highway_bench.pages import HISTORY, PAGES, REPORT, index, no_pages

HOST = "127.0.0.1"
NAMES = {HOST, "localhost", "[::1]"}  # of this machine, for a Host header; a tunnel may change the port
PARTS = {  # a link's text, the page below the folder of reports, and the folder that is copied
    "Report: every stored cell": (index(REPORT), REPORT),
    "History: every block over commits": (index(HISTORY), HISTORY),
    "Documentation": ("docs/docs/index.html", "docs"),
}
MARK = ".highway-bench-site"  # in a folder that this module wrote, and may write again
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>body {{ font: 1.1rem/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}</style>
<h1>{title}</h1>
<ul>
{links}
</ul>
</html>
"""


def write_site(reports: Path, folder: Path, title: str) -> list[str]:
    """Copy what there is of ``PARTS`` from ``reports`` into ``folder``, with a first page; a line for each that is not.

    The pages link each other relatively, so that the folder works anywhere. Raises ``NothingMeasured`` where there is
    no page, ``BadInput`` for a folder that has other files or is in one that is copied.
    """
    if any((reports / part).resolve() in (folder.resolve(), *folder.resolve().parents) for _, part in PARTS.values()):
        raise BadInput(f"{folder} is in a folder that is copied: name one outside of it")
    there = {text: part for text, part in PARTS.items() if (reports / part[0]).is_file()}
    if not there:
        raise no_pages(reports)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise BadInput(f"{folder} has other files: name an empty folder, or one that --site wrote before")
    links = "\n".join(f'<li><a href="{page}">{html.escape(text)}</a></li>' for text, (page, _) in there.items())
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARK).touch()
        (folder / ".nojekyll").touch()  # some hosts would leave out folders whose names begin with an underscore
        for name in {part.partition("/")[0] for _, part in PARTS.values()}:
            shutil.rmtree(folder / name, ignore_errors=True)
        for _, part in there.values():
            _copy(reports / part, folder / part)
        (folder / "index.html").write_text(PAGE.format(title=html.escape(title), links=links), encoding="utf-8")
    return [
        f"not part of the site, since there is no {reports / PARTS[text][0]}" for text in PARTS if text not in there
    ]


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copytree(source, target)
    except shutil.Error as error:  # of every file that could not be read or written
        _, _, reason = error.args[0][0]
        raise BadInput(f"cannot copy {source} to {target}: {reason}") from error


def link_report(page: Path) -> None:
    """Add a link from asv's page to the report if both exist; a second call adds no other."""
    report = page.parents[2] / index(REPORT)
    if not (page.is_file() and report.is_file()):
        return
    mark = '<li id="nav-li-" class="active">'
    link = f'<li><a href="{posixpath.relpath(index(REPORT), HISTORY)}">Report</a></li>\n\t'
    text = page.read_text(encoding="utf-8")
    if mark in text and link not in text:
        page.write_text(text.replace(mark, link + mark, 1), encoding="utf-8")


class Handler(SimpleHTTPRequestHandler):
    """Serves the files of the two folders of pages and no others; ``/`` redirects to the first page.

    A request that names another host is refused: a page elsewhere may let its own name point to this machine, and
    would then read these pages through the browser.
    """

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if re.sub(r":\d+$", "", self.headers.get("Host", "")) not in NAMES:
            self.send_error(421, "this server answers to the names of this machine only")
            return False
        return True

    def send_head(self):  # type: ignore[no-untyped-def]
        root = Path(self.directory)
        path = Path(self.translate_path(self.path))
        if path == root:
            self.send_response(302)
            self.send_header("Location", f"/{first_page(root) or index(REPORT)}")
            self.end_headers()
            return None
        try:  # a link must not lead out of the two folders, which may be links themselves
            is_page = any(path.resolve().is_relative_to((root / folder).resolve()) for folder in PAGES)
        except (OSError, RuntimeError, ValueError):  # a loop of links, a null character
            is_page = False
        if not is_page:
            self.send_error(404, "not one of the pages")
            return None
        return super().send_head()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")  # pages may be written again while the server runs
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the base class's name)
        """Log no requests."""


class Server(ThreadingHTTPServer):
    """A server that ignores closed connections, as when a page is closed while it loads."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), (BrokenPipeError, ConnectionResetError)):
            super().handle_error(request, client_address)


def server(reports: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of the pages in ``reports`` on 127.0.0.1, not yet serving; port 0 means any free one.

    Raises ``NothingMeasured`` where there are no pages, ``BadInput`` where the port is not available.
    """
    if first_page(reports) is None:
        raise no_pages(reports)
    try:
        return Server((HOST, port), functools.partial(Handler, directory=str(reports.resolve())))
    except (OSError, OverflowError) as error:
        raise BadInput(f"port {port} is not available: {error}") from error


def first_page(reports: Path) -> str | None:
    """The page for ``/``: the report, or else the history; ``None`` where there is neither."""
    return next((index(folder) for folder in PAGES if (reports / index(folder)).is_file()), None)


def pages(of: ThreadingHTTPServer, reports: Path) -> list[str]:
    """A line for each of the two pages: its address, or how it is made."""
    return [
        f"{name}: {address(of)}{index(folder)}"
        if (reports / index(folder)).is_file()
        else f"{name}: not there yet, made by {how}"
        for folder, (name, how) in PAGES.items()
    ]


def address(of: ThreadingHTTPServer) -> str:
    """The address of a server."""
    return f"http://{HOST}:{of.server_address[1]}/"
