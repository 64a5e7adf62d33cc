"""Writing files: an error of the file system becomes one line for the user."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from highway_bench.errors import BadInput


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise ``BadInput`` about ``path``, a file or folder, where the file system raises an error."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error
