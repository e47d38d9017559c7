"""From what people have to (rows, variables) numbers, and back."""

from .evidence import Between, OneOf
from .image import ImageEncoder, looks_like_images
from .table import TableEncoder

__all__ = ["Between", "ImageEncoder", "OneOf", "TableEncoder", "looks_like_images"]
