"""Imported by every Python process that has this folder in PYTHONPATH: warnings of the package's own code are errors.

Python's option -W and PYTHONWARNINGS take whole module names only, and so cannot name a package with its modules.
"""

import warnings

warnings.filterwarnings("error", module=r"highway_bench\b")
