"""The contents of a data file; ``.gz`` is unpacked, by its first bytes."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from highway_bench.errors import BadInput

GZIP = b"\x1f\x8b"


def contents_of(path: Path) -> bytes:
    """The bytes of a file, unpacked where it is a gzip file. Raises ``BadInput``, which names it, where it cannot be
    read or unpacked."""
    try:
        packed = path.read_bytes()
        return gzip.decompress(packed) if packed.startswith(GZIP) else packed
    except EOFError:
        raise BadInput(f"{path}: truncated, its gzip stream is incomplete") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"{path}: damaged gzip file ({error})") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
