"""Search: random trials from priors, and networks of one shape trained together as one."""
