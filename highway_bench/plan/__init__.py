"""Plan: from a profile and a selection to cells, what they would cost, and their run."""
