"""From the rows of a store to frames: the newest rows of each cell, and one kind of frame per module, of unrounded
numbers. Whatever reads results stands on these: the page, the studies, advice.
"""
