"""Anything with `schema` and `forward(x, given, context) -> Conditionals`."""
