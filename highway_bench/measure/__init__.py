"""Meters: how a step's time, memory, operations and statistics are measured, whatever it is a step of.

Modules here import one another relatively, since the history loads them under another name (see ``history.suite``).
"""
