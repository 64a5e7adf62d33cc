"""Values that JSON knows: numbers that are finite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def finite(entry: Mapping[str, Any]) -> dict[str, Any]:
    """``entry`` with null for each number that JSON does not have."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in entry.items()
    }
