"""The computations behind ``Results``, one kind of table per module: from frames to a frame of unrounded numbers."""
