"""Run: from a plan's cells through an engine to the store. One module an engine; ``runner.run_cells`` is the door."""
