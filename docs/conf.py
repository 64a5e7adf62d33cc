"""Sphinx's settings. Its source is the whole checkout, so that links between README and the pages are checked too."""

from highway_bench import __version__

project = "highway_bench"
author = "The highway_bench developers"
release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc"]

root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/*.rst", "docs/*.ipynb", "docs/results/*.md", "entries/*.md"]
nb_execution_mode = "off"  # a notebook has its outputs
myst_heading_anchors = 6  # as code hosts make them, so that #links are checked

autodoc_member_order = "alphabetical"
autodoc_typehints_format = "short"

html_theme = "alabaster"
html_title = f"highway_bench {release}"
