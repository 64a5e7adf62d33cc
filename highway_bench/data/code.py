"""``code``: predict each byte of Python's standard library from the bytes before it."""

from __future__ import annotations

import hashlib
import platform
import sysconfig
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import ClassVar, NamedTuple
from zlib import crc32

from highway_bench.data._files import contents_of
from highway_bench.data._next_byte import NextByte
from highway_bench.data._texts import TextParts
from highway_bench.data.base import register_dataset
from highway_bench.errors import BadInput

MOST_BYTES = 10_000_000  # of both parts
MOST_TEST_BYTES = 524_288  # a network is tested on all of it; a smaller part would have very few modules
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
GENERATED = ("config-", "_sysconfigdata")  # what a build writes, with its folders' names
DIGITS = 16  # of the digest


class SourceText(NamedTuple):
    """Both parts of the text, their files in order, and a digest of the parts."""

    parts: TextParts
    train: tuple[str, ...]
    test: tuple[str, ...]
    digest: str


def library_folder() -> Path:
    """The folder of the standard library."""
    return Path(sysconfig.get_path("stdlib"))


def absent() -> str | None:
    """Why there is no text, in one line; ``None`` where there is one."""
    folder = library_folder()
    return None if any(folder.glob("*.py")) else f"{folder} has no Python files, the source of this Python's library"


def standard_library() -> SourceText:
    """The text of the running Python's standard library."""
    return source_text(library_folder())


@cache
def source_text(folder: Path) -> SourceText:
    """The Python files of ``folder`` and its folders, each part in the order of their paths and joined by newlines.

    Packages that are installed there, tests, files that a build generates, empty files and repeated ones are left out.
    Whole modules and packages are held out: those that fit in ``MOST_TEST_BYTES`` together. Other files are for
    training: those that fit in what remains of ``MOST_BYTES``. Both are taken in the order of ``fitting``.

    Raises ``BadInput`` for a folder without Python files.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if path.is_file())
    by_text = {contents_of(folder / name): name for name in reversed(names) if is_library(name)}  # the first of equals
    texts = {name: text for text, name in sorted(by_text.items(), key=lambda item: item[1]) if text}
    if not texts:
        raise BadInput(f"{folder}: no Python files, so there is no text of this Python's standard library")
    sizes = {name: len(text) + 1 for name, text in texts.items()}
    modules: Counter[str] = Counter()
    for name, size in sizes.items():
        modules[module_of(name)] += size
    held_out = fitting(modules, min(MOST_TEST_BYTES, sum(sizes.values()) // 10))
    test = [name for name in texts if module_of(name) in held_out]
    others = {name: size for name, size in sizes.items() if module_of(name) not in held_out}
    chosen = fitting(others, MOST_BYTES - sum(sizes[name] for name in test))
    train = [name for name in others if name in chosen]
    parts = TextParts(*(b"\n".join(texts[name] for name in part) for part in (train, test)))
    return SourceText(parts, tuple(train), tuple(test), digest_of(parts))


def is_library(name: str) -> bool:
    """Whether the file of this path belongs to the library itself."""
    folders = PurePath(name).parts
    return not LEFT_OUT.intersection(folders[:-1]) and not folders[0].startswith(GENERATED)


def module_of(name: str) -> str:
    """The module or package at the top of the library that a file belongs to."""
    return name.partition("/")[0]


def fitting(sizes: Mapping[str, int], most: int) -> set[str]:
    """The names whose sizes fit in ``most`` together, taken in the order of the CRC-32 of their names.

    The order is fixed and as good as random. A name that does not fit is left out.
    """
    taken: set[str] = set()
    for name in sorted(sizes, key=lambda name: (crc32(name.encode()), name)):
        if sizes[name] <= most:
            taken.add(name)
            most -= sizes[name]
    return taken


def digest_of(parts: TextParts) -> str:
    """The first hexadecimal digits of a SHA-256 sum of both parts."""
    return hashlib.sha256(b"%d\n" % len(parts.train) + parts.train + parts.test).hexdigest()[:DIGITS]


@register_dataset(
    "code",
    summary="the next byte of the running Python's standard library",
    source="the Python files of the standard library, python.org",
)
@dataclass(frozen=True)
class Code(NextByte):
    """Causal language modelling of source code: the text is the standard library of the Python that runs.

    It is every file ``.py`` in the folder of the standard library, in the order of the paths, at most 10 MB. Installed
    packages, tests, files that a build generates, empty files and repeated ones are left out, and a newline joins the
    others. Whole modules and packages are held out, 512 KiB at most: see ``source_text``.

    ``python`` is the version of that Python and ``digest`` the first 16 digits of a SHA-256 sum of the text. Every cell
    has them in its recipe, so that cells of two texts are never taken for one another. Another text than that of the
    running Python cannot be loaded.

    Rows of ``length`` inputs, and the trigram at whose held-out loss a run succeeds, are those of ``NextByte``.
    """

    called: ClassVar[str] = "code"
    pins: ClassVar[Mapping[str, Callable[[], object]]] = {
        "python": platform.python_version,
        "digest": lambda: standard_library().digest,
    }

    python: str | None = None
    digest: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in self.pins:
            value = getattr(self, option)
            if value is not None and (not isinstance(value, str) or not value):
                raise BadInput(f"{option} must be a text, not {value!r}")

    @property
    def parts(self) -> TextParts:
        """Both parts of the text. Raises ``BadInput`` where they are not those of ``python`` and ``digest``."""
        for option, here in self.pins.items():
            wanted = getattr(self, option)
            if wanted is not None and wanted != here():
                raise BadInput(
                    f"code: the text is that of Python {self.python or '(any)'}, digest {self.digest or '(any)'}, and "
                    f"here is Python {platform.python_version()}, digest {standard_library().digest}"
                )
        return standard_library().parts

    def missing(self) -> str | None:
        return absent()
