"""The benchmarks that asv runs at every commit of a package with blocks, and the processes that measure for them.

A commit's times, operators and FLOP are measured by the meters of *this* tree, so that only the measured code differs
between two points. Its own package is therefore imported in other processes (``worker``), where this tree has another
name, and modules here, and the meters that they use, import one another relatively. Bytes held in memory, trainings and
slowdowns come from the commit's own tasks.
"""
