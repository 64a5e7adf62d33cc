"""Serve the report and asv's pages to browsers on this machine only."""

from __future__ import annotations

import functools
import posixpath
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from highway_bench.errors import BadInput
from highway_bench.pages import PAGES, REPORT, index, no_pages

HOST = "127.0.0.1"
NAMES = {HOST, "localhost", "::1"}  # of this machine, for a Host header; a tunnel may change the port


class Handler(SimpleHTTPRequestHandler):
    """Serves the files of the two folders of pages and no others; ``/`` redirects to the first page.

    A request that names another host is refused: a page elsewhere may let its own name point to this machine, and
    would then read these pages through the browser.
    """

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if _host_of(self.headers.get("Host", "")) not in NAMES:
            self.send_error(421, "this server answers to the names of this machine only")
            return False
        return True

    def do_GET(self) -> None:
        if urlsplit(self.path).path in ("", "/"):
            self.send_response(302)
            self.send_header("Location", f"/{first_page(Path(self.directory)) or index(REPORT)}")
            self.end_headers()
            return
        super().do_GET()

    def send_head(self):  # type: ignore[no-untyped-def]
        # As translate_path does: an escaped or dotted path, or a link, must not lead out of the two folders.
        path = posixpath.normpath(unquote(urlsplit(self.path).path))
        folder = next((Path(self.directory, one) for one in PAGES if f"{path}/".startswith(f"/{one}/")), None)
        try:
            confined = folder and Path(self.translate_path(self.path)).resolve().is_relative_to(folder.resolve())
        except (OSError, RuntimeError, ValueError):  # a loop of links, a null character
            confined = False
        if not confined:
            self.send_error(404, "not one of the pages")
            return None
        return super().send_head()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")  # pages may be written again while the server runs
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the base class's name)
        """Log no requests."""


def _host_of(header: str) -> str | None:
    """The name in a Host header, without its port; ``None`` where it is none."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


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
