"""Execution: runs cells through an engine into the store. One module an engine; it starts at ``runner.run_cells``."""
