"""Published results, measured again: modules that register them, and what these share. ``base.reproductions`` is the
registry."""
