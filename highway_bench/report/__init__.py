"""Report: tables, figures and a page from a store of results. Never imports torch."""
