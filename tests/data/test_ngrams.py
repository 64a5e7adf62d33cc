"""Byte n-grams: the vectorised Witten–Bell model against one of dictionaries, and its values on real text."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import pytest

from highway_bench.data import make_dataset
from highway_bench.data._next_byte import witten_bell_loss
from highway_bench.data._texts import text_parts
from highway_bench.data.language import Language

TRAIN = b"the cat sat on the mat, and the rat sat on that cat\n"


def by_dictionaries(train: bytes, test: bytes, order: int) -> float:
    """The mean loss of the model as its equation is written, one byte after the other."""
    counts: dict[bytes, Counter[int]] = defaultdict(Counter)
    for n in range(1, order + 1):
        for end in range(n - 1, len(train)):
            counts[train[end - n + 1 : end]][train[end]] += 1

    def chance(byte: int, before: bytes) -> float:
        shorter = chance(byte, before[1:]) if before else 1 / 256
        here = counts.get(before)
        return (here[byte] + len(here) * shorter) / (here.total() + len(here)) if here else shorter

    return -sum(math.log(chance(test[i], test[max(0, i - order + 1) : i])) for i in range(len(test))) / len(test)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("test", [b"a", b"that hat sat", b"xyz the \xff", bytes(range(256))])
def test_the_loss_is_that_of_dictionaries(test: bytes, order: int) -> None:
    assert witten_bell_loss(TRAIN, test, order) == pytest.approx(by_dictionaries(TRAIN, test, order), rel=1e-12)


@pytest.mark.parametrize("train", [b"a", b"ab"])
def test_a_training_text_may_be_shorter_than_the_order(train: bytes) -> None:
    assert witten_bell_loss(train, b"abc", 4) == pytest.approx(by_dictionaries(train, b"abc", 4), rel=1e-12)


def test_chances_of_all_bytes_have_the_sum_one() -> None:
    for before in (b"th", b"qq"):
        first = 2 * witten_bell_loss(TRAIN, before, 3)
        losses = [3 * witten_bell_loss(TRAIN, before + bytes([byte]), 3) - first for byte in range(256)]
        assert sum(math.exp(-loss) for loss in losses) == pytest.approx(1)


@pytest.mark.parametrize(("order", "bits"), [(1, 4.48), (2, 3.58), (3, 2.93), (4, 2.40)])
def test_bits_per_byte_of_the_film_reviews(order: int, bits: float) -> None:
    dataset = make_dataset("language")
    if absent := dataset.missing():
        pytest.skip(absent)
    assert isinstance(dataset, Language)
    assert witten_bell_loss(*text_parts(dataset.source), order) / math.log(2) == pytest.approx(bits, abs=0.005)
