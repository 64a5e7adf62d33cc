"""Decide: which connection to use, from trainings at tuned learning rates and fair starts, family by family.

``rates`` decides which learning rates are tried, ``arm`` which cells of one connection and start come next; ``vision``
and ``language`` list the arms, and ``protocol`` runs them all.
"""
