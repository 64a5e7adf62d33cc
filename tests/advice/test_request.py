"""Requests: layers that can be joined, data by the layer's kind or by name, a loss of one's own, and bad input."""

import gzip
import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from torch import nn
from torch.nn import functional

from highway_bench.data import fingerprint, make_dataset
from highway_bench.errors import BadInput
from highway_bench.provenance import free_memory
from highway_bench.studies.advice.about import own_norms
from highway_bench.studies.advice.before_training import workers_that_fit
from highway_bench.studies.advice.own_code import constant_loss_under
from highway_bench.tasks.predicted_costs import peak_by_depth, predicted_bytes

TEXT = "".join(f"{number} sheep\n" for number in range(2_000))


@pytest.mark.parametrize(
    ("layer", "kind", "data", "norms"),
    [
        ("feed_forward", "vector", "mnist-5k", []),
        ("normed_convolution", "image", "mnist-5k", ["BatchNorm2d"]),
        ("attention_and_mlp", "sequence", "digits", []),
    ],
)
def test_layers_as_users_have_them(examples, ask, layer, kind, data, norms):
    request = ask(f"{examples}:{layer}", data=None if data == "mnist-5k" else data, batch_size=None)
    assert (request.family.kind, request.data.name) == (kind, data)
    assert request.connections[0] == ("pre-norm", "depth-aware")
    assert predicted_bytes(request.run(request.connections[0], 2, 0.1, 0)) > 0  # it runs, with its norms and its data
    assert layer == "attention_and_mlp" or own_norms(request) == norms


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        ("wider", "shape"),
        ("noisy", "random"),
        ("state", "state"),
        ("state_in_a_buffer", "state"),
        ("masked", "mask"),
        ("empty", "parameters"),
        ("shared", "same parameters"),
        ("absent", "absent"),
    ],
)
def test_layers_that_cannot_be_joined(layers, ask, layer, says):
    with pytest.raises(BadInput, match=rf"\A[^\n]*{says}[^\n]*\Z"):
        ask(f"{layers}:{layer}", width=64)


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.parametrize("layer", ["normed", "spectral"])
def test_layers_that_cannot_be_copied_or_change_in_training_alone(layers, ask, layer):
    assert ask(f"{layers}:{layer}").family.name == f"{layers}:{layer}"


def test_what_no_module_has(ask):
    """Another function is another request, and so is another loss."""
    own = [lambda width: nn.Linear(width, width), lambda width: nn.Linear(width, width, bias=False)]
    losses = [lambda y, t: functional.cross_entropy(y, t), lambda y, t: 2 * functional.cross_entropy(y, t)]
    assert len({ask(layer, loss=loss).name for layer in own for loss in losses}) == 4


def test_starts_and_blocks_that_a_layer_can_carry(layers, ask):
    own = ask(f"{layers}:fine", block=())
    assert ("plain", "depth-aware") not in own.connections  # orthogonal weights are not a user's layer's
    left_out = {"parallel", "hc-static", "value-residual"}  # two sublayers; a variant; attention's values
    assert not {one.block for one in own.connections} & left_out
    with pytest.raises(BadInput, match="value-residual"):
        ask(f"{layers}:fine", block=("value-residual",))
    assert ("hc-static", "published") in ask(block=("hc-static",)).connections
    every = ask(block=()).connections
    assert {one.block for one in every} >= {"plain", "rezero", "mhc"}
    assert every[:3] == [("pre-norm", "depth-aware"), ("highway", "depth-aware"), ("highway-free", "depth-aware")]


def test_a_causal_layer_reads_a_text(layers, examples, ask, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    request = ask(f"{layers}:Causal", data=str(text))
    assert request.data.name == "language"
    with pytest.raises(BadInput, match="reads later steps"):
        ask(f"{examples}:attention_and_mlp", data=str(text))
    text.write_text("a short text")
    with pytest.raises(BadInput, match="too short"):
        ask(f"{layers}:Causal", data=str(text))


def test_what_can_be_read_once_is_saved(layers, ask, tmp_path):
    """A pipe, and gzip: workers open a copy, whose name follows its text."""
    text = TEXT.encode()
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
    of_file = ask(f"{layers}:Causal", data=str(tmp_path / "text.gz"))
    assert fingerprint(of_file.data.dataset) == fingerprint(requests[0].data.dataset)
    with pytest.raises(BadInput, match="save it"):
        make_dataset("language", path=str(pipe)).load()


def test_a_layer_of_vectors_gets_every_step_of_a_text(layers, ask, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    request = ask(f"{layers}:fine", data=str(text))
    assert (request.family.kind, request.template.family_options["kind"]) == ("sequence", "sequence")
    assert ask(f"{layers}:fine").family.kind == "vector"
    with pytest.raises(BadInput, match="kind=sequence"):
        ask(f"{layers}:fine", data=str(text), family_options={"kind": "vector"})


def test_sequences_read_digits_where_no_text_is_here(layers, examples, ask, monkeypatch):
    monkeypatch.delenv("HIGHWAY_BENCH_DATA", raising=False)
    for layer, name in ((f"{layers}:Causal", "language"), (f"{examples}:attention_and_mlp", "sentiment")):
        request = ask(layer, data=None)
        assert request.data.name == "mnist-5k"
        assert name in request.data.note


def test_batches_of_ones_own(layers, ask, tmp_path):
    """A layer and data may be named by their file, too."""
    file = tmp_path / f"{layers}.py"
    request = ask(f"{file}:fine", data=f"{file}:batches")
    assert request.family.name == f"{layers}:fine"
    assert len(request.data.dataset.load().train.inputs) == 8 * 16 - 12
    assert request.chance_loss == pytest.approx(math.log(2), abs=0.02)
    assert ask(f"{layers}:fine", data=f"{layers}:batches").name == request.name
    numbers = ask(f"{layers}:fine", data=f"{layers}:numbers")
    assert numbers.chance_loss == pytest.approx(float(numbers.data.dataset.load().train.targets.var()), rel=0.02)
    with pytest.raises(BadInput, match="equal"):
        ask(f"{layers}:fine", data=f"{layers}:one_class")


def test_a_loss_of_ones_own(layers, ask):
    plain, own = ask(), ask(loss=f"{layers}:loss")
    assert own.run(own.connections[0], 10, 0.1, 0).recipe["loss"] == f"{layers}:loss"
    assert own.chance_loss == pytest.approx(plain.chance_loss, rel=0.01)  # uniform classes, smoothed or not
    assert own.name != plain.name
    for name, says in (("no_loss", "finite"), ("none", "none"), ("negative_loss", "above 0")):
        with pytest.raises(BadInput, match=says):
            constant_loss_under(f"{layers}:{name}", make_dataset("digits"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"minutes": math.inf}, "minutes"),
        ({"minutes": 0.0}, "minutes"),
        ({"data": "none.txt"}, "none.txt"),
        ({"block": "higway"}, "did you mean highway"),
        ({"loss": "no_module:loss"}, "no_module"),
        ({"width": 0}, "width"),
        ({"steps": 4}, "steps"),
        ({"data_options": {"pool": 2}}, "pool"),
        ({"batch_size": 10_000}, "items"),
        ({"device": "tpu"}, "tpu"),
        ({"optimiser": "adam"}, "adam"),
        ({"repetition": -1}, "repetition"),
    ],
)
def test_bad_sizes_and_names(ask, words, says):
    with pytest.raises(BadInput, match=says):
        ask(**words)


def test_a_depth_that_does_not_fit_memory(ask, monkeypatch):
    request = ask()
    need = peak_by_depth(request.run(request.connections[0], 2, 0.1, 0))
    assert need.at(51) - need.at(50) > 4 * (8 * 8 + 8)  # at least its parameters
    monkeypatch.setattr(free_memory, "free_bytes", lambda device: 2**30)
    assert workers_that_fit(need, 50, 2, "cpu") == 2
    with pytest.raises(BadInput, match="does not fit memory"):
        workers_that_fit(need, 10_000_000, 2, "cpu")


def test_another_repetition_has_other_seeds(ask):
    one, other = ask(), ask(repetition=1)
    assert not {*one.final_seeds(12), *one.tuning_seeds(2)} & {*other.final_seeds(12), *other.tuning_seeds(2)}
    assert one.name != other.name


def test_sequences_train_with_adamw_and_others_with_sgd_unless_named(ask):
    """The recipe of AdamW is that of ``decide`` (see ``test_proof``), at rates of its own."""
    for layer, named, optimiser in (
        ("transformer", None, "adamw"),
        ("dense", None, "sgd"),
        ("conv", "adamw", "adamw"),
        ("transformer", "sgd", "sgd"),
    ):
        request = ask(layer, data="mnist-5k", optimiser=named)
        recipe = request.run(request.connections[0], 100, 0.1, 0).recipe
        assert (recipe["optimiser"], recipe.get("warm_up")) == (optimiser, 10 if optimiser == "adamw" else None)
        assert request.first_rates == {"adamw": (0.01, 0.003, 0.001), "sgd": (0.3, 0.1, 0.03)}[optimiser]
