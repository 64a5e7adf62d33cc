"""Published results, measured again: one per file. ``base.reproductions`` is the registry."""
