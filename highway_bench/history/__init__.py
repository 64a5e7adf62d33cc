"""History: every block's values over commits and machines, measured by asv. No torch, and no imports in this file."""

WINDOW = 10  # measured commits of a machine that count as recent
MOST_PAIRS = 24  # of processes, after which a comparison ends
