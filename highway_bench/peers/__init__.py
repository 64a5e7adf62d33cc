"""Peers: other implementations of networks that this package builds, and our time and bytes over theirs.

``implementations`` has them, one a function, and ``pair`` tries that they compute the same. ``task`` measures a cell,
``comparison`` makes the cells and runs them, and ``table`` prints the results. ``request`` has the options; importing
it does not import torch.
"""
