"""One folder for any web host: the report, asv's pages, and the documentation."""

from __future__ import annotations

import html
import shutil
from pathlib import Path

from highway_bench.errors import BadInput, writing
from highway_bench.pages import HISTORY, REPORT, index, no_pages

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
