"""Checkpoint: the state of a run that is under way, in a file, so that Ctrl-C costs a step and a kill a minute of it.

A file holds one run: a network, or the networks of a population. Its first line is JSON: the keys of the cells that are
trained (digests, which change with the code, the cell and the machine), and the length and hash of what follows. It is
replaced as a whole or not at all. torch is imported only where a state is read or written.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from highway_bench.cell import Cell
from highway_bench.training.stopping import termination_put_off

if TYPE_CHECKING:
    from highway_bench.training.loop import Training

EVERY = 60.0  # seconds between two writings, at least
SHARE = 20.0  # and so many times what the last one took
WORTH = 10.0  # seconds of training that are worth a file at its end: what is measured then may take long
SUFFIX, UNFINISHED = ".checkpoint", ".unfinished"


@dataclass(frozen=True)
class Kept:
    """The folder in which runs keep their states, and the key of each cell."""

    folder: Path
    keys: Mapping[Cell, str]

    def checkpoint(self, cells: Iterable[Cell]) -> Checkpoint:
        """The checkpoint of ``cells``, which are trained as one."""
        return Checkpoint(self.folder, [self.keys[cell] for cell in cells])

    def parted(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        """``cells`` by the file that has their state, and last those of which none has."""
        headers = dict(headers_in(self.folder))
        found: dict[Path | None, list[Cell]] = {path: [] for path in (*headers, None)}
        for cell in cells:
            found[next((path for path, keys in headers.items() if self.keys[cell] in keys), None)].append(cell)
        return [group for group in found.values() if group]


class Checkpoint:
    """The state of one run, under the keys of its cells."""

    def __init__(self, folder: Path, keys: Sequence[str]) -> None:
        self.keys = list(keys)
        self.path = folder / f"{hashlib.sha256(' '.join(sorted(keys)).encode()).hexdigest()[:32]}{SUFFIX}"
        self._written = time.monotonic()
        self._every = EVERY
        self._warned = False

    def restore(self, members: Sequence[Training]) -> bool:
        """Put ``members``, one a key, where a file that has them all left off; whether there was one.

        A file that is broken is removed, with a warning: its run starts anew.
        """
        covering = [path for path, keys in headers_in(self.path.parent) if keys.issuperset(self.keys)]
        for path in sorted(covering, key=lambda path: path != self.path):  # its own before that of a larger group
            states = read(path)
            if states is not None:
                for key, member in zip(self.keys, members, strict=True):
                    member.restore(states[key])
                return True
        return False

    def train_keeping(
        self, members: Sequence[Training], run: Callable[[Callable[[], None], Callable[[], bool]], None]
    ) -> None:
        """Have ``run`` train ``members`` and keep their state now and then. It is given what to do at a look, and how
        to know that it is to stop: where the process is told to end, it does so here, with their last state kept.
        """
        with termination_put_off() as told_to_stop:
            run(lambda: self.offer(members, told_to_stop=told_to_stop()), told_to_stop)

    def offer(self, members: Sequence[Training], *, told_to_stop: bool = False) -> None:
        """Keep the state of ``members``, if the last is old enough: a minute, and twenty times what it took to write;
        ten seconds where they have ended; any where they are to stop.

        A state that cannot be written (a full disk) is none: the run goes on, with a warning the first time.
        """
        began = time.monotonic()
        enough = WORTH if all(member.ended for member in members) else self._every
        if not told_to_stop and began - self._written < enough:
            return
        try:
            self.keep(members)
        except OSError as error:
            if not self._warned:
                warnings.warn(
                    f"no checkpoint can be kept ({error.strerror or error}): a kill loses this run", stacklevel=2
                )
            self._warned = True
        self._written = time.monotonic()
        self._every = max(EVERY, SHARE * (self._written - began))

    def keep(self, members: Sequence[Training]) -> None:
        """Write the state of ``members``; a kill amid it leaves the file as it was."""
        import torch

        states = io.BytesIO()
        torch.save({key: member.state() for key, member in zip(self.keys, members, strict=True)}, states)
        content = states.getvalue()
        about = {"keys": self.keys, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(UNFINISHED)
        try:
            with unfinished.open("wb") as out:
                out.write(json.dumps(about).encode() + b"\n")
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            unfinished.replace(self.path)
        except OSError:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)  # a full disk has no room for half a state
            raise

    def forget(self) -> None:
        """Remove the file: its cells have ended. The folder stays, for another worker may be about to write there."""
        self.path.unlink(missing_ok=True)


def headers_in(folder: Path) -> Iterator[tuple[Path, frozenset[str]]]:
    """The checkpoints in ``folder`` with the keys that each has; a broken one is removed, with a warning."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        header = _header(path)
        if header is not None:
            yield path, frozenset(header["keys"])


def read(path: Path) -> dict[str, dict[str, Any]] | None:
    """The states in the file, by key; ``None`` where it is broken, and then it is removed, with a warning."""
    import torch

    header = _header(path)
    if header is None:
        return None
    with path.open("rb") as source:
        source.readline()
        content = source.read()
    if hashlib.sha256(content).hexdigest() != header["sha256"]:
        _discard(path)
        return None
    states: dict[str, dict[str, Any]] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return states


def sweep(folder: Path, ended: Collection[str]) -> None:
    """Remove the checkpoints of cells that have all ended, and the folder if it is empty; no run may be under way."""
    for path in folder.glob(f"*{UNFINISHED}"):  # a kill amid writing left it
        path.unlink()
    for path, keys in headers_in(folder):
        if keys.issubset(ended):
            path.unlink(missing_ok=True)
    with suppress(OSError):  # others are still needed, or nothing was ever kept
        folder.rmdir()


def _header(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as source:
            line = source.readline()
            header = json.loads(line)
            whole = source.seek(0, os.SEEK_END) == len(line) + header["bytes"]
    except FileNotFoundError:  # its run has just ended
        return None
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        _discard(path)
        return None
    return dict(header)


def _discard(path: Path) -> None:
    warnings.warn(f"checkpoint {path.name} is broken: its run starts anew", stacklevel=3)
    path.unlink(missing_ok=True)
