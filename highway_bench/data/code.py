"""``code``: predict each byte of Python's standard library from the bytes before it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from highway_bench.data._next_byte import NextByte
from highway_bench.data._standard_library import absent, standard_library
from highway_bench.data._text_source import TextParts
from highway_bench.data.base import register_dataset
from highway_bench.errors import BadInput


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
