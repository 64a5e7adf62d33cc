"""IDX, the format that MNIST is published in: a big-endian header, then raw bytes; plain or gzip."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from highway_bench.data._files import contents_of
from highway_bench.errors import BadInput

UNSIGNED_BYTE = 0x08


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an IDX file, in the shape that its header gives.

    The header is two zero bytes, a type code, the number of axes, and each axis' length as four bytes. Raises
    ``BadInput``, which names the file, where the file cannot be read or unpacked, is not IDX, or does not have the
    length that its header gives.
    """
    contents = contents_of(path)
    if len(contents) < 4 or contents[:2] != b"\0\0":
        raise BadInput(f"{path}: not an IDX file, it starts with the bytes {contents[:4].hex(' ') or '(none)'}")
    kind, axes = contents[2], contents[3]
    if kind != UNSIGNED_BYTE:
        raise BadInput(f"{path}: IDX type code 0x{kind:02x}, where unsigned bytes (0x08) are expected")
    start = 4 + 4 * axes
    if len(contents) < start:
        raise BadInput(f"{path}: truncated within its header, after {len(contents)} bytes")
    shape = struct.unpack(f">{axes}I", contents[4:start])
    announced = math.prod(shape)
    if len(contents) - start != announced:
        fault = "truncated" if len(contents) - start < announced else "too long"
        raise BadInput(
            f"{path}: {fault}, its header announces {announced:,} bytes of data and it holds {len(contents) - start:,}"
        )
    return np.frombuffer(contents, np.uint8, offset=start).reshape(shape)
