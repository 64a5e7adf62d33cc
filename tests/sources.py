"""Sources: the source that belongs to each version of what a cell's key names (see ``highway_bench.execution.key``).

    python -m tests.sources                                  # what has another source than its version
    python -m tests.sources --accept "why no number changes"
    python -m tests.sources --since COMMIT

``tests/sources.json`` has, for each task, block, family, data set and architecture, its version and the hash of its
source with all that this imports. A change of source either raises the version, in the entry's own file, or is
accepted: both write new hashes, an acceptance only where ``tests.same_numbers`` finds equal numbers. ``--since`` reads
the file in every commit after this one: whatever changed there has a new version, or a new acceptance.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from highway_bench.architectures import architectures
from highway_bench.blocks import blocks
from highway_bench.data import datasets
from highway_bench.families import families
from highway_bench.registry import Registry, load_plugin
from highway_bench.source import SourceTree, is_ours
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.tasks import tasks
from tests import same_numbers

FILE = Path(__file__).with_suffix(".json")
ROOT = FILE.parents[1]
REGISTRIES: tuple[Registry[Any], ...] = (tasks, blocks, families, datasets, architectures)


WAYS_OUT = (
    'If a number changes, raise the version (version="2") and record: python -m tests.same_numbers --record',
    'Then, and if no number changes: python -m tests.sources --accept "why"',
)


class Entry(NamedTuple):
    version: str
    source: str


def present() -> dict[str, Entry]:
    """The entries of this package as they are now."""
    of_studies = [plugin for name in reproductions.names() for plugin in reproductions.get(name).plugins]
    for plugin in ("highway_bench.peers.task", *of_studies):  # which have tasks of their own
        load_plugin(plugin)
    tree = SourceTree()
    return {
        f"{registry.kind} {name}": Entry(registry.version_of(name), tree.digest([registry.module_of(name)]))
        for registry in REGISTRIES
        for name in registry.names()
        if is_ours(registry.module_of(name))
    }


def committed(text: str | None = None) -> tuple[str, dict[str, Entry]]:
    """The last acceptance, and the entries of the file, or of an older ``text`` of it."""
    content = json.loads(FILE.read_text(encoding="utf-8") if text is None else text)
    return content["accepted"], {name: Entry(*entry) for name, entry in content["entries"].items()}


def texts_since(commit: str) -> list[str]:
    """The file's texts in ``commit``, if it is there, and in every later commit that changed it."""
    name = f"./{FILE.relative_to(ROOT)}"
    later = git("rev-list", "--reverse", f"{commit}..HEAD", "--", name).split()
    return [git("show", f"{one}:{name}") for one in [commit, *later] if git("ls-tree", one, "--", name)]


def git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def changed(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    """The entries whose source differs."""
    return [name for name, entry in after.items() if name in before and entry.source != before[name].source]


def faults(before: Mapping[str, Entry], after: Mapping[str, Entry], *, accepted: bool) -> list[str]:
    """Why ``after`` may not follow ``before``, a line each."""
    lines = [f"{name} is gone: rows have its name" for name in before.keys() - after.keys()]
    for name in changed(before, after):
        if int(after[name].version) < int(before[name].version):
            lines.append(f"{name} went back from version {before[name].version}")
        elif after[name].version == before[name].version and not accepted:
            lines.append(f"{name} has another source than in version {after[name].version}")
    return lines


def write(reason: str, entries: Mapping[str, Entry]) -> None:
    lines = {name: list(entry) for name, entry in sorted(entries.items())}
    text = ",\n".join(f"    {json.dumps(name)}: {json.dumps(entry)}" for name, entry in lines.items())
    FILE.write_text(f'{{\n  "accepted": {json.dumps(reason)},\n  "entries": {{\n{text}\n  }}\n}}\n', encoding="utf-8")


def main() -> str | None:
    parser = argparse.ArgumentParser(description="Keep the sources that belong to versions.")
    parser.add_argument("--accept", metavar="REASON", help="no number changes: write the present sources")
    parser.add_argument("--since", metavar="COMMIT", help="fail if something changed there without a word")
    options = parser.parse_args()
    if options.since is not None:
        versions = [committed(text) for text in texts_since(options.since)]
        found = [
            fault
            for (past, before), (reason, after) in itertools.pairwise(versions)
            for fault in faults(before, after, accepted=past != reason)
        ]
        return "\n".join(found) or None
    if options.accept:
        differing = same_numbers.differences(same_numbers.measured())
        if differing:
            return "\n".join(["numbers changed, so versions must be raised:", *differing])
        write(options.accept, present())
        return None
    _, before = committed()
    after = present()
    new = [f"{name} is new" for name in sorted(after.keys() - before.keys())]
    found = [*faults(before, after, accepted=False), *new]
    return "\n".join([*found, *WAYS_OUT]) if found else None


if __name__ == "__main__":
    sys.exit(main())
