"""Benchmarks of asv. asv imports every module in this folder, so it must contain nothing else."""
