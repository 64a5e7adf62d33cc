"""Layouts: whole published networks that any block and family can fill."""

from highway_bench.layouts._base import Layout, layouts, register_layout

__all__ = ["Layout", "layouts", "register_layout"]
