"""Where data are looked for."""

import pytest

from highway_bench.data import cache_folder, data_folder
from highway_bench.data._files import find_folder
from highway_bench.errors import BadInput


def test_no_folder_is_named(monkeypatch):
    monkeypatch.delenv("HIGHWAY_BENCH_DATA", raising=False)
    assert data_folder() is None
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", "")
    assert data_folder() is None


def test_a_relative_folder_is_made_absolute_at_once(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", "mine")
    folder = data_folder()
    monkeypatch.chdir("/")
    assert folder == tmp_path / "mine"


def test_a_folder_that_is_not_there(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for name in ("nowhere", "file"):
        monkeypatch.setenv("HIGHWAY_BENCH_DATA", str(tmp_path / name))
        with pytest.raises(BadInput, match=name):
            data_folder()


def test_the_cache_follows_the_platform(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "highway_bench"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "highway_bench"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert cache_folder() == tmp_path / "other" / "highway_bench"


def test_the_named_folder_comes_before_the_cache(nowhere, tmp_path, monkeypatch):
    given = tmp_path / "given"
    assert find_folder("mnist", ["a", "b"]) is None
    for folder in (nowhere / "mnist", given, given / "mnist"):  # each is preferred to those before
        folder.mkdir(parents=True)
        (folder / "b").write_text("")
        monkeypatch.setenv("HIGHWAY_BENCH_DATA", str(given) if given.is_dir() else "")
        assert find_folder("mnist", ["a", "b"]) == folder
        assert find_folder("mnist", ["c"]) is None
