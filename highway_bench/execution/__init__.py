"""Execution: runs cells through an engine into the store. The entry point is ``runner.run_cells``; each engine has one module."""
