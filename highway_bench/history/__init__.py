"""History: every block's values over commits and machines, measured by asv. Never imports torch."""
