"""Interactive: what Python users get, in a script or a notebook."""
