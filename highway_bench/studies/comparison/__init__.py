"""Comparison of one block with committed rows: which connections train better, which worse, and which is undecided.

``finals`` reads the trainings that count from rows, ``contrasts`` compares two connections, ``rungs`` trains the block
and the check under the protocol of ``decide``, and ``my_block`` joins them.
"""
