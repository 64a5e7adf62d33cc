"""Direct parts: modules that find their parts without torch's ``__getattr__``.

torch keeps the parts of a module in a dictionary of their own, which Python searches by ``nn.Module.__getattr__``. That
costs about as much as the call of a part: 5 % of a step of plain layers of 50 units.
"""

from __future__ import annotations

from typing import Any

from torch import nn


class DirectParts(nn.Module):
    """A module whose parts are attributes of the instance as well.

    This follows parts that are assigned, replaced or deleted as attributes.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, nn.Module) or name in self.__dict__:
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self.__dict__.pop(name, None)
