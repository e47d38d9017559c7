"""Bits: laws as whole numbers, a range coder, and what an archive is made of. Knows nothing of models."""

from .coder import Coder, Decoder, Encoder
from .container import Archive, ArchiveWriter, Block, Damage, Writable
from .frequencies import Binary, Even, Frequencies, Scored, Shades, shades
from .tables import Integers

__all__ = [
    "Archive",
    "ArchiveWriter",
    "Binary",
    "Block",
    "Coder",
    "Damage",
    "Decoder",
    "Encoder",
    "Even",
    "Frequencies",
    "Integers",
    "Scored",
    "Shades",
    "Writable",
    "shades",
]
