"""Decide: which connection to use, from trainings at tuned learning rates and fair starts, family by family.

``rates`` decides which learning rates are tried, and ``candidate`` which cells of one connection and start come next.
``dense``, ``vision`` and ``language`` list the candidates, and ``protocol`` trains them.
"""
