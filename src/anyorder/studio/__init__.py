"""The library in a browser: a small server for one person on one machine, and one static page."""
