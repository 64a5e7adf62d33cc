"""What asv runs. Every module in this folder is imported by asv, so nothing but its benchmarks may lie here."""
