"""Which connection to take: one wide table of all that was measured, from which every answer is read.

``table`` makes it from results and ``costs`` its times; ``answers`` reads the part that travels with the package, and
adds a store's; ``ranking`` orders the connections of a kind and depth, and ``lines`` prints them.
"""
