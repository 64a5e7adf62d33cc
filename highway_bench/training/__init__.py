"""Training: how a network is trained, alone or stacked with others of its shape as one population."""
