"""Peers: other implementations of networks that this package builds, and our time and bytes over theirs.

One peer a file, which ``pair`` imports. ``task`` measures a cell, ``comparison`` makes the cells and runs them, and
``table`` prints the results. ``request`` has the options; importing it does not import torch.
"""
