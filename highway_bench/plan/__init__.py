"""Plan: the cells of a profile and a selection, their estimated cost, and their run."""
