"""The measured part of docs/advice.md: makes its advice, and writes it between its marks.

An advice that was made before is read from ``reports/advice``, and an interrupted one goes on.

    nox -s proof -- advice-docs --minutes 10
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from highway_bench.errors import BadInput
from highway_bench.registry import make_importable
from highway_bench.report.columns import shown_lines
from highway_bench.results import Store
from highway_bench.studies.advice.answer import Advice
from highway_bench.studies.advice.options import ADVICES
from highway_bench.studies.advice.page import finalists_table
from highway_bench.studies.advice.run import advise

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/advice.md"
LAYERS = ROOT / "examples"
OUT = ROOT / ADVICES
MINUTES = 10.0

LAYER, DEPTH = "user_layers:feed_forward", 24
PART = "feed-forward"
"""The part of the document with the answer."""


def marks(name: str) -> tuple[str, str]:
    """The lines of the document between which the part ``name`` is."""
    return f"<!-- measured: {name} -->", "<!-- end -->"


def with_part(text: str, name: str, lines: Iterable[str]) -> str:
    """The document with ``lines`` as its part ``name``."""
    begin, end = marks(name)
    before, found, rest = text.partition(f"{begin}\n")
    if not found or end not in rest:
        raise SystemExit(f"the document has no part {name!r}: the lines {begin} and {end}")
    return f"{before}{begin}\n" + "\n".join(["", *lines, "", end]) + rest.partition(end)[2]


def advice_lines(advice: Advice) -> list[str]:
    """The answer with its table; raises ``SystemExit`` if a measurement failed."""
    if advice.exit_status:
        raise SystemExit(advice.notes[-1])
    answer = [line for text in advice.lines() for line in (f"> {text}", ">")][:-1]
    return [*answer, "", *shown_lines(finalists_table(advice)), "", " ".join([*advice.notes, measured_by(advice)])]


def measured_by(advice: Advice) -> str:
    """When, where and with what an advice was measured, in a sentence."""
    with Store(advice.store, read_only=True) as store:
        runs = [run for run in store.runs().values() if run.get("measured")]
    facts = {name: ", ".join(sorted({str(run[name]) for run in runs})) for name in ("commit", "torch", "os", "cores")}
    machines = ", ".join(sorted({one for run in runs for one in run["machines"].values()}))
    return (
        f"Measured within {advice.about['minutes']:g} minutes on {min(run['started'] for run in runs)[:10]}, "
        f"{machines} ({facts['cores']} cores, {facts['os']}), torch {facts['torch']}, commit {facts['commit']}."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the part."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=MINUTES)
    minutes = parser.parse_args(arguments).minutes
    make_importable(LAYERS)
    command = ["highway-bench", "advise", LAYER, "--depth", str(DEPTH)]
    command += [] if minutes == MINUTES else ["--minutes", f"{minutes:g}"]
    try:
        advice = advise(LAYER, depth=DEPTH, minutes=minutes, out=OUT, progress=True, command=command)
    except BadInput as error:
        parser.exit(error.exit_status, f"{error}\n")
    text = with_part(DOCUMENT.read_text(encoding="utf-8"), PART, advice_lines(advice))
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
