"""Codecs for images: networks for ever finer lattices of pixels, and how images get into archives and out of them."""
