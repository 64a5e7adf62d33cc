"""Decide: which connection to use, from trainings at tuned learning rates and fair starts, family by family.

``candidate`` decides which learning rates and which cells of one connection and start come next. ``part``, ``language``
and ``evidence`` list the candidates, and ``protocol`` trains them.
"""
