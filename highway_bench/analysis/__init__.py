"""Analysis: what is read off a network: signal, conditioning, gates, lesions. Knows nothing of blocks."""
