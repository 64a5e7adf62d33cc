"""Checkpoint: the state of an unfinished run in a file. Ctrl-C costs such a run one step, a kill about a minute.

A file holds one run: one network, or the networks of a population. Its first line is JSON: the keys of the cells in
training (see ``execution.key``), and the length and hash of the rest. A file is replaced atomically. torch is imported
only where a state is read or written. On SIGTERM, a run with a checkpoint ends between two steps, never within one.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from highway_bench.cell import Cell

INTERVAL = 60.0  # least seconds between two saves
WRITING_FACTOR = 20.0  # and at least this many times the duration of the last save
WORTH_SAVING = 10.0  # seconds of training from which a finished run is saved: measuring it may take long too
SUFFIX, UNFINISHED = ".checkpoint", ".unfinished"


@contextmanager
def deferred_sigterm() -> Iterator[Callable[[], bool]]:
    """Defer SIGTERM until the end of this context. The yielded function says whether the signal has arrived.

    At the end of the context the signal is sent again, which ends the process. Raises ``SystemExit`` if the process
    survives it: the code after the context must not run either. The sender may kill the process soon: a pool of workers
    waits three seconds. Signals can be handled in the main thread only; in any other thread nothing is deferred.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    received = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received = True

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield lambda: received
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)  # None if it was not set from Python
        if received:
            os.kill(os.getpid(), signal.SIGTERM)
            raise SystemExit(128 + signal.SIGTERM)


if TYPE_CHECKING:
    from highway_bench.training.loop import Training


@dataclass(frozen=True)
class CheckpointFolder:
    """The folder of a store's checkpoints, and the key of each cell."""

    folder: Path
    keys: Mapping[Cell, str]

    def checkpoint(self, cells: Iterable[Cell]) -> Checkpoint:
        """The checkpoint of ``cells`` that are trained as one population."""
        return Checkpoint(self.folder, [self.keys[cell] for cell in cells])

    def by_file(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        """``cells`` grouped by the file that holds their state. The last group has those without a file."""
        headers = dict(headers_in(self.folder))
        groups: dict[Path | None, list[Cell]] = {path: [] for path in (*headers, None)}
        for cell in cells:
            groups[next((path for path, keys in headers.items() if self.keys[cell] in keys), None)].append(cell)
        return [group for group in groups.values() if group]


class Checkpoint:
    """The state of one run, under the keys of its cells."""

    def __init__(self, folder: Path, keys: Sequence[str]) -> None:
        self.keys = list(keys)
        self.path = folder / f"{hashlib.sha256(' '.join(sorted(keys)).encode()).hexdigest()[:32]}{SUFFIX}"
        self._saved_at = time.monotonic()
        self._interval = INTERVAL
        self._warned = False

    def restore(self, members: Sequence[Training]) -> bool:
        """Restore ``members``, one per key, from a file that holds all of them. Returns whether there was one.

        A broken file is removed with a warning, and its run starts from step 0.
        """
        covering = [path for path, keys in headers_in(self.path.parent) if keys.issuperset(self.keys)]
        for path in sorted(covering, key=lambda path: path != self.path):  # the own file before a larger group's
            states = read(path)
            if states is not None:
                for key, member in zip(self.keys, members, strict=True):
                    member.restore(states[key])
                return True
        return False

    def train(self, members: Sequence[Training], run: Callable[[Callable[[], None], Callable[[], bool]], None]) -> None:
        """Let ``run`` train ``members``, and save their state at intervals.

        ``run`` gets two functions: the first saves the state if a save is due, the second says whether to stop. On
        SIGTERM the last state is saved, and the process ends here.
        """
        with deferred_sigterm() as should_stop:
            run(lambda: self.save_if_due(members, should_stop=should_stop()), should_stop)

    def save_if_due(self, members: Sequence[Training], *, should_stop: bool = False) -> None:
        """Save the state of ``members`` if a save is due.

        A save is due a minute after the last one, and not before 20 times its duration have passed. It is due after ten
        seconds if all members have ended, and at once if they are to stop.

        If the state cannot be written (a full disk), the run goes on. The first failure is a warning.
        """
        began = time.monotonic()
        due = WORTH_SAVING if all(member.ended for member in members) else self._interval
        if not should_stop and began - self._saved_at < due:
            return
        try:
            self.save(members)
        except OSError as error:
            if not self._warned:
                warnings.warn(
                    f"no checkpoint can be saved ({error.strerror or error}): a kill loses this run", stacklevel=2
                )
            self._warned = True
        self._saved_at = time.monotonic()
        self._interval = max(INTERVAL, WRITING_FACTOR * (self._saved_at - began))

    def save(self, members: Sequence[Training]) -> None:
        """Write the state of ``members``. A kill during the write leaves the old file. Raises ``OSError``."""
        import torch

        states = io.BytesIO()
        torch.save({key: member.state() for key, member in zip(self.keys, members, strict=True)}, states)
        content = states.getvalue()
        header = {"keys": self.keys, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(UNFINISHED)
        try:
            with unfinished.open("wb") as out:
                out.write(json.dumps(header).encode() + b"\n")
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            unfinished.replace(self.path)
        except OSError:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)  # frees the space on a full disk
            raise

    def remove(self) -> None:
        """Remove the file once its cells have ended. The folder stays: another worker may be about to write there."""
        self.path.unlink(missing_ok=True)


def headers_in(folder: Path) -> Iterator[tuple[Path, frozenset[str]]]:
    """The checkpoints in ``folder``, each with its keys. A broken one is removed with a warning."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        header = _header(path)
        if header is not None:
            yield path, frozenset(header["keys"])


def read(path: Path) -> dict[str, dict[str, Any]] | None:
    """The states in the file, by key. A broken file is removed with a warning, and the result is ``None``."""
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
    """Remove the checkpoints whose cells have all ended, and the folder if it is empty. No run may be active."""
    for path in folder.glob(f"*{UNFINISHED}"):  # left by a kill during a write
        path.unlink()
    for path, keys in headers_in(folder):
        if keys.issubset(ended):
            path.unlink(missing_ok=True)
    with suppress(OSError):  # the folder holds other checkpoints, or does not exist
        folder.rmdir()


def _header(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as source:
            line = source.readline()
            header = json.loads(line)
            complete = source.seek(0, os.SEEK_END) == len(line) + header["bytes"]
    except FileNotFoundError:  # its run has just ended
        return None
    except (ValueError, KeyError, TypeError):
        complete = False
    if not complete:
        _discard(path)
        return None
    return dict(header)


def _discard(path: Path) -> None:
    warnings.warn(f"checkpoint {path.name} is broken: its run starts from step 0", stacklevel=3)
    path.unlink(missing_ok=True)
