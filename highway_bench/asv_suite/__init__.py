"""The benchmarks that asv runs at every commit of a package with blocks, and the processes that measure for them.

A commit is measured by the meters of *this* tree, not by its own, so that only the measured code differs between two
points. Its own package is therefore imported in other processes (``worker``), where this tree has another name. For
this reason all modules here, and the meters that they use, import one another relatively.
"""
