"""Names: kept apart, found by wildcard, read from source, and registered by other packages."""

import importlib
from collections import OrderedDict
from types import SimpleNamespace

import pytest

from highway_bench import registry
from highway_bench.errors import BadInput, DuplicateName, UnknownName
from highway_bench.registry import Registry, described, load_plugin


@pytest.fixture
def things():
    things = Registry("thing")
    for number, name in enumerate(["layer-10", "layer-2", "highway", "highway-free", "plain"]):
        things.register(name, number, module=f"module_{number}")
    return things


def test_names_are_sorted_as_people_count(things):
    assert things.names() == ["highway", "highway-free", "layer-2", "layer-10", "plain"]
    assert list(things) == things.names()
    assert len(things) == 5


def test_wildcards_keep_the_order_asked_for(things):
    assert things.select("plain", "highway*", "plain") == ["plain", "highway", "highway-free"]
    assert things.select("*") == things.names()
    assert things.select() == []


def test_an_unknown_name_lists_near_ones(things):
    with pytest.raises(UnknownName) as caught:
        things.get("higway")
    assert "did you mean highway, highway-free" in str(caught.value)
    assert isinstance(caught.value, KeyError)
    assert caught.value.exit_status == 2
    with pytest.raises(UnknownName, match="known: highway"):
        things.get("qqq")
    with pytest.raises(UnknownName, match="did you mean highway"):
        things.select("plain", "higway*")


def test_a_duplicate_names_both_places_and_changes_nothing(things):
    with pytest.raises(DuplicateName, match="module_4 and in elsewhere"):
        things.register("plain", 9, module="elsewhere")
    assert (things.get("plain"), things.module_of("plain")) == (4, "module_4")


@pytest.mark.parametrize("name", ["", "Plain", "two words", "x--y", "1st", "x\n", "../x"])
def test_names_that_are_no_names(things, name):
    with pytest.raises(BadInput, match="lower-case"):
        things.register(name, 0, module="here")


def test_unregistering(things):
    things.unregister("plain")
    things.unregister("plain")
    assert "plain" not in things
    things.register("plain", 7, module="again")


def test_a_package_s_public_modules_are_imported_at_the_first_look_up(tmp_path, monkeypatch):
    package = tmp_path / "things_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("from highway_bench.registry import Registry\nthings = Registry('thing')\n")
    (package / "one.py").write_text("from things_of_a_test import things\nthings.register('one', 1, module=__name__)\n")
    (package / "_two.py").write_text("raise RuntimeError('private')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    lazy = Registry("thing", package="things_of_a_test")
    assert lazy.names() == []  # its modules register with their own registry; what counts is that they were imported
    things = importlib.import_module("things_of_a_test").things
    assert things.get("one") == 1


BROKEN = {
    "raise ValueError('no luck')": "ValueError: no luck",
    "def (": "SyntaxError: ",
    "import sys\nsys.exit(7)": "SystemExit: 7",
}


@pytest.mark.parametrize("source", BROKEN)
def test_a_file_that_fails_to_import_is_one_clear_line(tmp_path, monkeypatch, source):
    """One of a package, and a plug-in."""
    package = tmp_path / f"package_{list(BROKEN).index(source)}"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "zbad.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    things = Registry("thing", package=package.name)
    plugin = f"{package.name}.zbad"
    for ask in (things.names, things.names, lambda: load_plugin(plugin)):  # a notebook may ask again
        with pytest.raises(BadInput, match=rf"^\S+( '{plugin}')? failed to import: {BROKEN[source]}") as caught:
            ask()
        assert "\n" not in str(caught.value)


def test_a_plug_in_s_own_clear_error_stays_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "clear_plugin.py").write_text("from highway_bench.errors import BadInput\nraise BadInput('mend this')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BadInput, match=r"^mend this$"):
        load_plugin("clear_plugin")


@pytest.fixture
def pointed(monkeypatch):
    """Makes a registry with an entry point ``mine``, whose loading calls a function of the registry."""

    def registry_with(load):
        things = Registry("thing", group="highway_bench.things")
        point = SimpleNamespace(name="mine", value="my_package.blocks:Mine", load=lambda: load(things))
        monkeypatch.setattr(registry, "entry_points", lambda group: [point] * (group == "highway_bench.things"))
        return things

    return registry_with


def test_entry_points_register_at_the_first_look_up(pointed):
    loaded = []

    def load(things):
        loaded.append(things.names())  # a plug-in may look names up while it registers
        things.register("mine", 1, module="my_package.blocks")

    things = pointed(load)
    assert loaded == []
    assert (things.names(), things.get("mine"), loaded) == (["mine"], 1, [[]])


def test_an_entry_point_of_a_class_that_registers_nothing_is_an_alias(pointed):
    things = pointed(lambda _: OrderedDict)
    assert things.alias_of("mine") == "collections:OrderedDict"
    assert things.alias_of("another") == "another"
    assert "mine" not in things


def test_an_entry_point_that_fails_is_one_clear_line(pointed):
    with pytest.raises(BadInput, match="no_such_module"):
        pointed(lambda _: importlib.import_module("no_such_module")).names()


def test_an_entry_point_s_duplicate_is_told_as_such(pointed):
    things = pointed(lambda things: things.register("mine", 1, module="my_package.blocks"))
    things.register("mine", 0, module="here")
    with pytest.raises(DuplicateName, match=r"in here and in my_package\.blocks"):
        things.names()


def test_the_first_line_of_a_docstring_describes_an_entry():
    def entry():
        """What it is.

        More of it.
        """

    assert described(entry) == "What it is."
    assert described(lambda: None) == ""
