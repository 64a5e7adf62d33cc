"""Shown: a result shows itself by its tables, in print and in a notebook."""

from __future__ import annotations

from html import escape
from typing import Final

import pandas as pd

LINES: Final = 30
"""Lines in print; a table in a notebook has so many rows."""


class ShowsTables:
    """A result with ``headlines`` and ``tables``."""

    def headlines(self) -> list[str]:
        """The lines above the tables."""
        raise NotImplementedError

    def tables(self) -> dict[str, pd.DataFrame]:
        """Small tables by title."""
        raise NotImplementedError

    def __repr__(self) -> str:
        lines, tables = self.headlines(), self.tables()
        most = max(1, (LINES - len(lines)) // max(1, len(tables)) - 3)
        for title, table in tables.items():
            more = f", {most} of {len(table)} rows" if len(table) > most else ""
            text = table.head(most).to_string(index=False, float_format="{:.3g}".format, na_rep="")
            lines += ["", f"{title}{more}", *text.splitlines()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(line)}</p>" for line in self.headlines()]
        for title, table in self.tables().items():
            html = table.to_html(index=False, float_format="{:.3g}".format, na_rep="", max_rows=LINES, border=0)
            parts.append(f"<h4>{escape(title)}</h4>{html}")
        return "".join(parts)
