"""Success: the one rule for when a run succeeds, when a depth trains, and how deep a block trains.

``judging`` reads the losses of a run, ``ladder`` the runs of each depth, ``rates`` those at several learning rates.
Nothing here imports torch.
"""
