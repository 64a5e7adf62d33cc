"""Success: the one rule for when a run succeeds, when a depth trains, and how deep a block trains.

``judging`` reads the losses of a run, ``ladder`` the runs of each depth, and ``explained`` says all of it in words.
Training tasks import only ``judging``, so that no wording and no interval is part of a trained cell's digest. Nothing
here imports torch.
"""
