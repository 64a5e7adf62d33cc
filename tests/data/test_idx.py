"""IDX files: what a good one gives, and the one line that every kind of bad one gets."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highway_bench.data._digit_images import read_idx
from highway_bench.errors import BadInput

ARRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
CONTENTS = bytes.fromhex("00000803 00000002 00000003 00000004") + ARRAY.tobytes()
PACKED = gzip.compress(CONTENTS, mtime=0)  # the same bytes in every process: they name tests


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some-idx3-ubyte"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_an_array_comes_back(path: Path, pack: type) -> None:
    path.write_bytes(pack(CONTENTS))
    assert np.array_equal(read_idx(path), ARRAY)


@pytest.mark.parametrize(
    ("contents", "fault"),
    [
        (b"", "not an IDX file"),
        (b"PNG!" + CONTENTS, "50 4e 47 21"),
        (b"\0\0\x0d" + CONTENTS[3:], "0x0d"),
        (CONTENTS[:9], "header"),
        (CONTENTS[:-1], "24 bytes of data and it holds 23"),
        (CONTENTS + b"\0", "24 bytes of data and it holds 25"),
        (PACKED[:-9], "incomplete"),
        (PACKED[:-8] + bytes(8), "damaged"),
    ],
)
def test_a_bad_file_is_named_with_its_fault(path: Path, contents: bytes, fault: str) -> None:
    path.write_bytes(contents)
    with pytest.raises(BadInput, match=f"some-idx3-ubyte: .*{fault}") as caught:
        read_idx(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_idx(tmp_path)


@given(cut=st.integers(0, 300), compressed=st.booleans())
def test_wherever_a_file_is_cut(tmp_path_factory: pytest.TempPathFactory, cut: int, compressed: bool) -> None:
    whole = PACKED if compressed else CONTENTS
    path = tmp_path_factory.getbasetemp() / "cut"
    path.write_bytes(whole[:cut])
    if cut < len(whole):
        with pytest.raises(BadInput):
            read_idx(path)
    else:
        assert np.array_equal(read_idx(path), ARRAY)
