"""Training: how a network is trained, by itself or with others of its shape as one population."""
