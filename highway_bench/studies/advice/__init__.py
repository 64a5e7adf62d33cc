"""Advice: which connection to use for one layer at one depth, with what it costs and how sure that is.

``request`` checks what the user gives (``joinable`` the layer, ``data_choice`` the data), ``connections`` lists what is
compared, ``budget`` divides the time, ``costs`` times, ``halving`` and ``final_runs`` train, ``finals`` judges,
``answer`` concludes, ``page`` writes it down. ``run`` has ``advise``, which does all of it.
"""

from pathlib import Path
from typing import Final

ADVICES: Final = Path("reports/advice")
"""The folder of advices, where none is given; each advice has a folder in it."""
