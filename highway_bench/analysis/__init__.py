"""Analysis: signal, conditioning, gates and lesions of a network. Does not depend on blocks."""
