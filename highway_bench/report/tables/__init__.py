"""The computations behind ``Results``, one kind of table a module: frames in, a frame with unrounded numbers out."""
