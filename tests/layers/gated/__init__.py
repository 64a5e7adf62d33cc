"""A package whose modules import each other by relative names."""

from .convolution import layer

__all__ = ["layer"]
