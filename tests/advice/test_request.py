"""Requests: data by the layer's kind or by name, a loss of one's own, and bad sizes."""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from highway_bench.data import make_dataset
from highway_bench.errors import BadInput
from highway_bench.provenance import free_memory
from highway_bench.studies.advice.about import own_norms
from highway_bench.studies.advice.fit import workers_that_fit
from highway_bench.studies.advice.own_loss import constant_loss_under
from highway_bench.studies.advice.request import AdviceRequest
from highway_bench.studies.decide.part import vision
from highway_bench.tasks.predicted_costs import peak_by_depth

Ask = Callable[..., AdviceRequest]


def test_options_of_the_data_replace_those_of_the_advice(ask: Ask) -> None:
    for options, side in (({}, 14), ({"pooled": 1}, 28)):
        assert ask(data="mnist-5k", data_options=options).data.dataset.input_shape == (1, side, side)


def test_a_text_that_is_too_short(layers: str, ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a short text")
    with pytest.raises(BadInput, match="too short"):
        ask(f"{layers}:Causal", data=str(tmp_path / "text.txt"))


def test_a_causal_layer_reads_a_text(layers: str, examples: str, ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(f"{number} sheep\n" for number in range(2_000)))
    request = ask(f"{layers}:Causal", data=str(tmp_path / "text.txt"))
    assert request.data.name == "language"
    cell = request.run(request.connections[0], 100, 0.01, 0)
    assert cell.recipe["optimiser"] == "adamw"
    assert cell.recipe["warm_up"] == 10
    with pytest.raises(BadInput, match="reads later steps"):
        ask(f"{examples}:attention_and_mlp", data=str(tmp_path / "text.txt"))


def test_what_can_be_read_once_is_saved(layers: str, ask: Ask, tmp_path: Path) -> None:
    """A pipe, and gzip: workers open a copy, whose name follows its text."""
    text = "".join(f"{number} sheep\n" for number in range(2_000)).encode()
    (tmp_path / "text.gz").write_bytes(gzip.compress(text))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    requests = []
    for contents in (text, gzip.compress(text)):
        with ThreadPoolExecutor() as pool:
            pool.submit(pipe.write_bytes, contents)
            requests.append(ask(f"{layers}:Causal", data=str(pipe)))
    one, other = (Path(request.data.options["path"]) for request in requests)
    assert one == other
    assert one.read_bytes() == text
    assert ask(f"{layers}:Causal", data=str(tmp_path / "text.gz")).data_hash == requests[0].data_hash
    with pytest.raises(BadInput, match="save it"):
        make_dataset("language", path=str(pipe)).load()


def test_a_layer_of_vectors_gets_every_step_of_a_text(layers: str, ask: Ask, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{number} sheep\n" for number in range(2_000)))
    request = ask(f"{layers}:fine", data=str(text))
    assert (request.family.kind, request.template.family_options["kind"]) == ("sequence", "sequence")
    assert ask(f"{layers}:fine").family.kind == "vector"
    with pytest.raises(BadInput, match="kind=sequence"):
        ask(f"{layers}:fine", data=str(text), family_options={"kind": "vector"})


def test_sequences_read_digits_where_no_text_is_here(
    layers: str, examples: str, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HIGHWAY_BENCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for layer, name in ((f"{layers}:Causal", "language"), (f"{examples}:attention_and_mlp", "sentiment")):
        request = ask(layer, data=None)
        assert request.data.name == "mnist-5k"
        assert f"because {name} is not here" in request.data.note


def test_batches_of_ones_own(layers: str, ask: Ask) -> None:
    request = ask(f"{layers}:fine", data=f"{layers}:batches")
    dataset = request.data.dataset
    assert (dataset.input_kind, dataset.target_kind, dataset.outputs) == ("image", "class", 2)
    assert len(dataset.load().train.inputs) == 8 * 16 - 12
    assert request.chance_loss == pytest.approx(math.log(2), abs=0.02)
    assert ask(f"{layers}:fine", data=f"{layers}:batches").name == request.name
    numbers = ask(f"{layers}:fine", data=f"{layers}:numbers")
    assert numbers.data.dataset.target_kind == "scalar"
    assert numbers.chance_loss == pytest.approx(float(numbers.data.dataset.load().train.targets.var()), rel=0.02)
    for name, says in (
        ("no_batches", "no batch"),
        ("unlabelled", "classes"),
        ("one_class", "equal"),
    ):
        with pytest.raises(BadInput, match=says):
            ask(f"{layers}:fine", data=f"{layers}:{name}")


def test_a_loss_of_ones_own(layers: str, ask: Ask) -> None:
    plain, own = ask(), ask(loss=f"{layers}:loss")
    assert own.run(own.connections[0], 10, 0.1, 0).recipe["loss"] == f"{layers}:loss"
    assert own.chance_loss == pytest.approx(plain.chance_loss, rel=0.01)  # uniform classes, smoothed or not
    assert own.name != plain.name
    for name, says in (
        ("no_loss", "finite"),
        ("none", "none"),
        ("negative_loss", "above 0"),
    ):
        reference = f"{layers}:{name}"
        with pytest.raises(BadInput, match=says):
            constant_loss_under(reference, make_dataset("digits"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"minutes": math.inf}, "minutes"),
        ({"width": 0}, "width"),
        ({"steps": 4}, "steps"),
        ({"data_options": {"pool": 2}}, "pool"),
        ({"batch_size": 10_000}, "items"),
        ({"device": "tpu"}, "tpu"),
        ({"optimiser": "adam"}, "adam"),
    ],
)
def test_bad_sizes_and_names(ask: Ask, words: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        ask(**words)


def test_a_depth_that_does_not_fit_memory(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    request = ask()
    need = peak_by_depth(request.run(request.connections[0], 2, 0.1, 0))
    assert need.at(51) - need.at(50) > 4 * (8 * 8 + 8)  # at least its parameters
    monkeypatch.setattr(free_memory, "free_bytes", lambda device: 2**30)
    assert workers_that_fit(need, 50, 2, "cpu") == 2
    with pytest.raises(BadInput, match="does not fit memory"):
        workers_that_fit(need, 10_000_000, 2, "cpu")


def test_a_layer_may_be_named_by_its_file(layers: str, ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / f"{layers}.py"
    assert ask(f"{file}:fine", data=f"{file}:batches").family.name == f"{layers}:fine"


def test_a_norm_of_the_layers_own_is_named(layers: str, examples: str, ask: Ask) -> None:
    assert own_norms(ask(f"{examples}:normed_convolution")) == ["BatchNorm2d"]
    assert own_norms(ask(f"{examples}:feed_forward")) == []


def test_another_repetition_has_other_seeds(ask: Ask) -> None:
    one, other = ask(), ask(repetition=1)
    assert not {*one.final_seeds(12), *one.tuning_seeds(2)} & {*other.final_seeds(12), *other.tuning_seeds(2)}
    assert one.name != other.name


def test_sequences_train_with_the_recipe_of_decide(layers: str, ask: Ask, tmp_path: Path) -> None:
    """Of ``decide``'s trainings, at rates of its own; others train with SGD, unless another optimiser is named."""
    sequences = vision().only(["transformer"]).candidates[0].template.recipe
    for request, expected in (
        (ask("transformer", data="mnist-5k"), "adamw"),
        (ask(f"{layers}:Causal", data="mnist-5k"), "adamw"),
        (ask("dense"), "sgd"),
        (ask("conv", data="mnist-5k", optimiser="adamw"), "adamw"),
        (ask("transformer", data="mnist-5k", optimiser="sgd"), "sgd"),
    ):
        recipe = request.run(request.connections[0], 100, request.first_rates[0], 0).recipe
        assert recipe["optimiser"] == expected
        if expected == "adamw":
            words = ("schedule", "decay", "weight_decay", "clip")
            assert {word: recipe[word] for word in words} == {word: sequences[word] for word in words}
            assert (recipe["warm_up"], request.first_rates) == (10, (0.01, 0.003, 0.001))
        else:
            assert recipe.keys().isdisjoint({"warm_up", "clip"})
            assert request.first_rates[0] == 0.3
