"""A connection to take home: one file of plain torch, which imports nothing else.

``connections`` has every listed connection as plain torch; ``text`` says how each is printed, and writes the file of
one of them.
"""
