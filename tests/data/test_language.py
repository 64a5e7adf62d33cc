"""Language: where the text comes from, its rows, its split, input that is no text, and the n-grams of its target."""

import math
from collections import Counter, defaultdict

import pytest
import torch

from highway_bench.data import make_dataset
from highway_bench.data._next_byte import witten_bell_loss
from highway_bench.data._texts import MOST_TEST_BYTES, split_text, text_parts
from highway_bench.errors import BadInput

LINES = "".join(f"line {number} of a text\n" for number in range(40))


def of_text(text, folder, **options):
    """The data set of a file with this text."""
    file = folder / "text.txt"
    file.write_bytes(text.encode())
    return make_dataset("language", path=str(file), **options)


def text_of(dataset):
    """Both parts of the data set's text."""
    return b"".join(text_parts(dataset.source))


@pytest.fixture
def reviews():
    dataset = make_dataset("language")
    if absent := dataset.missing():
        pytest.skip(absent)
    return dataset


def test_every_byte_but_the_first_is_a_target_once(tmp_path):
    dataset = of_text(LINES, tmp_path, length=7)
    for part, split in zip(text_parts(dataset.source), dataset.load(), strict=True):
        used = len(split.inputs) * 7
        assert len(part) - 7 <= used < len(part)
        assert split.targets.flatten().tolist() == [byte + 1 for byte in part[1 : used + 1]]
        assert split.inputs.flatten().tolist() == [byte + 1 for byte in part[:used]]
        assert torch.equal(split.inputs[1:, 0], split.targets[:-1, -1])


@pytest.mark.parametrize(
    ("text", "held_out"),
    [
        (b"a" * 100, 10),
        (b"a" * 94 + b"\n" + b"a" * 5, 5),
        (b"a" * 95 + b"\n" + b"a" * 4, 10),
        (b"a" * 89 + b"\n" + b"a" * 10, 10),
        (b"a" * 90 + b"\n" + b"a" * 9, 9),
        (b"a" * 20 * MOST_TEST_BYTES, MOST_TEST_BYTES),
    ],
)
def test_the_last_tenth_is_held_out_from_the_start_of_a_line(text, held_out):
    train, test = split_text(text)
    assert len(test) == held_out
    assert train + test == text


def test_no_line_of_the_reviews_is_in_both_parts(reviews):
    train, test = (set(part.split(b"\n")) for part in text_parts(reviews.source))
    assert train & test <= {b""}
    assert len(reviews.load().test.inputs) * reviews.length <= MOST_TEST_BYTES


def test_a_repeated_text_and_an_empty_one_are_left_out(tmp_path):
    for name, text in (("b/two", "second"), ("a", "first"), ("c", "first"), ("d", ""), (".hidden", "x"), (".g/y", "x")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert text_of(make_dataset("language", path=str(tmp_path))) == b"first\nsecond"


def test_a_set_of_the_hub(hub):
    path = hub(train={"words": ["one", "two", "one", "drei\ud800"]})
    assert text_of(make_dataset("language", hub=path, text_column="words")) == b"one\ntwo\ndrei?"
    path = hub(train={"words": ["one", None]})
    with pytest.raises(BadInput, match="words"):
        make_dataset("language", hub=path, text_column="words").load()
    with pytest.raises(BadInput, match="no column"):
        make_dataset("language", hub=path).load()


def test_reference_scores(tmp_path):
    dataset = of_text(LINES, tmp_path)
    assert dataset.reference_loss == witten_bell_loss(*split_text(LINES.encode()), 3)
    assert dataset.reference_loss < dataset.chance_loss < math.log(256)


@pytest.mark.parametrize("text", ["", "x" * 100])
def test_a_text_that_is_too_short(tmp_path, text):
    with pytest.raises(BadInput, match="too short"):
        of_text(text, tmp_path).load()


def test_a_path_without_text(tmp_path):
    with pytest.raises(BadInput, match="none"):
        make_dataset("language", path=str(tmp_path / "none")).load()
    with pytest.raises(BadInput, match="no files"):
        make_dataset("language", path=str(tmp_path)).load()
    (tmp_path / "image.png").write_bytes(b"text\x89PNG")
    with pytest.raises(BadInput, match=r"image\.png"):
        make_dataset("language", path=str(tmp_path)).load()


# ------------------------------------------------------------------------------------------------------- byte n-grams

TRAIN = b"the cat sat on the mat, and the rat sat on that cat\n"


def by_dictionaries(train, test, order):
    """The mean loss of the model as its equation is written, one byte after the other."""
    counts = defaultdict(Counter)
    for n in range(1, order + 1):
        for end in range(n - 1, len(train)):
            counts[train[end - n + 1 : end]][train[end]] += 1

    def chance(byte, before):
        shorter = chance(byte, before[1:]) if before else 1 / 256
        here = counts.get(before)
        return (here[byte] + len(here) * shorter) / (here.total() + len(here)) if here else shorter

    return -sum(math.log(chance(test[i], test[max(0, i - order + 1) : i])) for i in range(len(test))) / len(test)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("test", [b"a", b"that hat sat", b"xyz the \xff", bytes(range(256))])
def test_the_loss_is_that_of_dictionaries(test, order):
    assert witten_bell_loss(TRAIN, test, order) == pytest.approx(by_dictionaries(TRAIN, test, order), rel=1e-12)


@pytest.mark.parametrize("train", [b"a", b"ab"])
def test_a_training_text_may_be_shorter_than_the_order(train):
    assert witten_bell_loss(train, b"abc", 4) == pytest.approx(by_dictionaries(train, b"abc", 4), rel=1e-12)


def test_bits_per_byte_of_the_film_reviews(reviews):
    assert witten_bell_loss(*text_parts(reviews.source), 3) / math.log(2) == pytest.approx(2.93, abs=0.005)
