"""Published results, measured again: one a file. ``base.reproductions`` is the registry."""
