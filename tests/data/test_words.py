"""Text to token ids."""

from __future__ import annotations

import pytest

from highway_bench.data._texts import UNKNOWN, Vocabulary, tokenise
from highway_bench.data.base import PADDING


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't &lt;3 it!", ["i", "don't", "<", "3", "it", "!"]),
        ("Tom &amp; Jerry", ["tom", "&", "jerry"]),
        ("the ''new'' one", ["the", "'", "'", "new", "'", "'", "one"]),
        ("Amélie: £5, @anonymous #fb :D", ["amélie", ":", "£", "5", ",", "@", "anonymous", "#", "fb", ":", "d"]),
        ("", []),
        (" \t ", []),
    ],
)
def test_tokens(text: str, words: list[str]) -> None:
    assert tokenise(text) == words


def test_ids_go_from_the_commonest_word_up() -> None:
    words = Vocabulary.of([["b", "a", "c"], ["b", "a"], ["d", "b"]], min_count=2)
    assert words.ids == {"b": 2, "a": 3}
    assert len(words) == 4
    assert Vocabulary.of([["b", "a"]], min_count=1).ids == {"a": 2, "b": 3}  # a tie goes by the alphabet


def test_short_texts_are_padded_and_long_ones_cut_off() -> None:
    words = Vocabulary.of([["b", "b", "a"]], min_count=1)
    ids = words.encode([["a"], ["b", "z", "a", "a"], []], length=3)
    assert ids.tolist() == [[3, PADDING, PADDING], [2, UNKNOWN, 3], [PADDING] * 3]
