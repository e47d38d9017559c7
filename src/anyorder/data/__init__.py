"""From what people have to (rows, variables) numbers, and back."""

from .evidence import Between, OneOf
from .table import TableEncoder

__all__ = ["Between", "OneOf", "TableEncoder"]
