"""Execution: runs cells through an engine into the store. It starts at ``runner.run_cells``; an engine is a module."""
