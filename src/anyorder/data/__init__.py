"""The world and (rows, variables) numbers: one file a kind of data."""

from .table import TableEncoder

__all__ = ["TableEncoder"]
