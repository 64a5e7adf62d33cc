"""Code of others as it was published, with its faults. No profile has it: reproductions load a module as a plug-in."""
