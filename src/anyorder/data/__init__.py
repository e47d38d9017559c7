"""From what people have to (rows, variables) numbers, and back."""

from .evidence import Between, OneOf
from .image import ImageEncoder, looks_like_images
from .preview import OnClassToo, Preview
from .sentinels import Sentinels
from .table import TableEncoder, look_at, tell_of_gaps

__all__ = [
    "Between",
    "ImageEncoder",
    "OnClassToo",
    "OneOf",
    "Preview",
    "Sentinels",
    "TableEncoder",
    "look_at",
    "looks_like_images",
    "tell_of_gaps",
]
