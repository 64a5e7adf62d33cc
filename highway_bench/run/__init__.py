"""Run: from a plan's cells through an engine to the store. One module an engine; it starts at ``runner.run_cells``."""
