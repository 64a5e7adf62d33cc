"""Tuning: random trials from priors, the same for every block."""
