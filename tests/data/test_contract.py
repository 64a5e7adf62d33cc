"""What holds for every registered data set, whatever it holds."""

import dataclasses

import pytest
import torch

from highway_bench.data import Data, datasets, make_dataset
from highway_bench.errors import BadInput

# Every set by its defaults, and options that reach further parts of it. With every training word known and nothing
# cut off, different texts have different ids.
VARIANTS = {
    "sentiment": {"corpus": "tweets", "length": 80, "min_count": 1},
    "adding": {"length": 7, "size": 20_000},
    "copy": {"length": 3},
    "recall": {"length": 33, "pairs": 8, "vocab": 32, "size": 20_000},
}
CASES = [(name, {}) for name in datasets] + list(VARIANTS.items())


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case[0] + ("*" if case[1] else ""))
def dataset(request):
    """All tests of one set run after each other, because two generated sets at most are kept."""
    name, options = request.param
    needed = [option for option, default in datasets.get(name).options.items() if default is dataclasses.MISSING]
    if needed and not options:
        pytest.skip(f"it needs {needed[0]}")
    made = make_dataset(name, **options)
    if absent := made.missing():
        pytest.skip(absent)
    return made


def rows(inputs):
    return {row.tobytes() for row in inputs.numpy()}


def by_place(targets):
    """Targets as (items, places): one place for a class."""
    return targets.reshape(len(targets), -1)


def shares(targets, outputs):
    """Share of every answer at every place, (places, outputs); 0 where nothing is asked for."""
    return torch.stack(
        [
            torch.bincount(column[column >= 0], minlength=outputs) / max(int((column >= 0).sum()), 1)
            for column in by_place(targets).T
        ]
    )


INPUTS = {"image": torch.float32, "series": torch.float32, "tokens": torch.int64}


def test_inputs(dataset):
    data = dataset.load()
    assert isinstance(data, Data)
    for inputs, targets in data:
        assert len(inputs) == len(targets) > 0
        assert inputs.shape[1:] == dataset.input_shape
        assert inputs.is_contiguous()
        assert inputs.dtype == INPUTS[dataset.input_kind]
        if dataset.input_kind == "image":
            assert (inputs.min(), inputs.max()) == (0, 1)
        assert inputs.isfinite().all()
    assert (dataset.vocabulary is not None) == (dataset.input_kind == "tokens")
    if dataset.vocabulary is not None:
        assert all(0 <= split.inputs.min() <= split.inputs.max() < dataset.vocabulary for split in data)
    padded = dataset.input_kind == "tokens" and bool((data.train.inputs == 0).any())
    assert padded == dataset.padded
    if dataset.padded:  # after the words
        padding = data.train.inputs == 0
        assert (padding[:, 1:] >= padding[:, :-1]).all()


def test_targets(dataset):
    for inputs, targets in dataset.load():
        assert targets.dtype == (torch.float32 if dataset.target_kind == "scalar" else torch.int64)
        assert targets.shape == (inputs.shape if dataset.target_kind == "token" else inputs.shape[:1])
        match dataset.target_kind:
            case "scalar":
                assert dataset.outputs == 1
            case "class":
                assert targets.unique().tolist() == list(range(dataset.outputs))
            case "token":
                asked = targets[targets != -100]
                assert 0 <= asked.min() <= asked.max() < dataset.outputs


def test_no_class_is_rare(dataset):
    if dataset.target_kind != "class":
        pytest.skip("its answers are not classes")
    train, test = (shares(split.targets, dataset.outputs) for split in dataset.load())
    assert train.min() > 0.5 / dataset.outputs
    torch.testing.assert_close(train, test, rtol=0, atol=0.01)


def test_chance_loss_is_that_of_the_best_constant_predictor(dataset):
    targets = dataset.load().train.targets
    if dataset.target_kind == "scalar":
        loss = (targets - targets.mean()).square().mean().item()
    else:
        places = by_place(targets)
        asked = (places != -100).nonzero()[:, 1], places[places != -100]
        loss = -shares(targets, dataset.outputs)[asked].log().mean().item()
    exact = dataset.target_kind == "class"  # the others are expectations, and shares are fitted to the sample
    assert loss == pytest.approx(dataset.chance_loss, rel=1e-5 if exact else 0.015)


def test_chance_accuracy_is_that_of_the_commonest_answer(dataset):
    train, test = (split.targets for split in dataset.load())
    if dataset.target_kind == "scalar":
        assert dataset.chance_accuracy is None
        return
    answer = shares(train, dataset.outputs).argmax(-1)
    places = by_place(test)
    right = (places == answer)[places != -100].float().mean().item()
    exact = dataset.target_kind == "class"
    assert right == pytest.approx(dataset.chance_accuracy, rel=1e-6 if exact else 0.25)


def test_training_and_test_items_differ(dataset):
    if "min_count" in {item.name for item in dataclasses.fields(dataset)}:
        dataset = dataclasses.replace(dataset, min_count=1)
    train, test = dataset.load()
    both = rows(train.inputs) & rows(test.inputs)
    # files of source code share lines, such as those of a licence
    assert len(both) <= (0.001 * len(test.inputs) if dataset.byte_targets else 0)


def test_the_same_seed_gives_the_same_data(dataset):
    for first, second in zip(dataset.load(seed=3), dataset.load(seed=3), strict=True):
        assert torch.equal(first.inputs, second.inputs)
        assert torch.equal(first.targets, second.targets)


@pytest.mark.parametrize("name", list(datasets))
def test_every_entry_says_what_it_is(name):
    spec = datasets.get(name)
    assert spec.name == name
    assert all((spec.summary, spec.source, spec.cls.__doc__))
    assert spec.cls.__dataclass_params__.frozen
    assert spec.options.keys() == {item.name for item in dataclasses.fields(spec.cls)}
    assert datasets.module_of(name).startswith("highway_bench.data.")


@pytest.mark.parametrize(
    ("name", "options", "fault"),
    [
        ("adding", {"length": "50"}, "length"),
        ("adding", {"test_size": True}, "test_size"),
        ("copy", {"size": 2.5}, "size"),
        ("recall", {"vocab": 7}, "vocab"),
        ("recall", {"length": 15}, "length of 16"),
        ("recall", {"vocab": 8}, "3 keys"),
        ("recall", {"pairs": 0}, "pairs"),
        ("sentiment", {"corpus": "films"}, "corpus"),
        ("sentiment", {"min_count": 0}, "min_count"),
        ("text", {"path": ""}, "path"),
        ("text", {}, "path"),
        ("code", {"length": 0}, "length"),
        ("code", {"digest": 3}, "digest"),
        ("digits", {"length": 5}, "length"),
        ("language", {"path": "a", "hub": "b"}, "not from both"),
        ("mnist", {"test_share": 1.5}, "test_share"),
    ],
)
def test_impossible_options(name, options, fault):
    with pytest.raises(BadInput, match=fault):
        make_dataset(name, **options)


@pytest.mark.parametrize("name", ["adding", "copy", "recall"])
def test_a_seed_is_a_whole_number(name):
    with pytest.raises(BadInput, match="seed"):
        make_dataset(name).load(seed=-1)
