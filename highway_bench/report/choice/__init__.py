"""Which connection to take: one wide table of all that was measured, from which every answer is read.

``table`` makes it from results, ``speed`` and ``costs`` its times; ``known`` reads the part that travels with the
package; ``ranking`` orders the connections of a kind and depth, and ``lines`` prints them.
"""
