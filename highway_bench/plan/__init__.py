"""Plan: from a selection to the cells to measure, what they would cost, and their run."""
