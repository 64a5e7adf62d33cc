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
        (b"", r"not an IDX file, it starts with the bytes \(none\)"),
        (b"\0\0", "not an IDX file"),
        (b"PNG!" + CONTENTS, "not an IDX file, it starts with the bytes 50 4e 47 21"),
        (b"\0\0\x0d" + CONTENTS[3:], r"IDX type code 0x0d, where unsigned bytes \(0x08\) are expected"),
        (CONTENTS[:9], "truncated within its header, after 9 bytes"),
        (CONTENTS[:-1], "truncated, its header announces 24 bytes of data and it holds 23"),
        (CONTENTS + b"\0", "too long, its header announces 24 bytes of data and it holds 25"),
        (PACKED[:-9], "truncated, its gzip stream is incomplete"),
        (PACKED[:-8] + bytes(8), "damaged gzip file"),
        (PACKED[:12] + b"\xff" * 8 + PACKED[20:], "damaged gzip file"),
        (b"\x1f\x8b", "truncated, its gzip stream is incomplete"),
    ],
)
def test_a_bad_file_is_named_with_its_fault(path: Path, contents: bytes, fault: str) -> None:
    path.write_bytes(contents)
    with pytest.raises(BadInput, match=f"some-idx3-ubyte: {fault}") as caught:
        read_idx(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot be read \(Is a directory\)"):
        read_idx(tmp_path)
    with pytest.raises(BadInput, match=r"gone: cannot be read \(No such file"):
        read_idx(tmp_path / "gone")


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
