"""Codecs for tables: how cells are written, one network for all columns, and how tables get into archives and out of them."""
