"""Entries: a block of anybody's, measured by one command under a fixed protocol, as a folder that the board takes.

``protocol`` has the columns and trains, ``columns`` reads the results off the rows, ``folder`` writes and reads an
entry, and ``board`` checks all entries and writes their page.
"""
