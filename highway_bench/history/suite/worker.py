"""The process that measures one package: ``process`` runs this file with that package first on the path.

This file's own tree, whose meters measure, is called ``current`` here.
"""

import importlib
import sys
from pathlib import Path
from types import ModuleType

if __name__ == "__main__":
    tree = sys.modules["current"] = ModuleType("current")
    tree.__path__ = [str(Path(__file__).resolve().parents[2])]
    importlib.import_module("current.history.suite.requests").main()
