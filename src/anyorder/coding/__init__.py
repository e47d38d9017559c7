"""Bits: distributions as whole numbers, a range coder, and what an archive is made of. Knows nothing of models."""

from .coder import Coder, Decoder, Encoder
from .container import Archive, ArchiveWriter, Block, Damage, Writable
from .frequencies import Binary, Frequencies, Integers, Scored, Shades, Uniform, shades

__all__ = [
    "Archive",
    "ArchiveWriter",
    "Binary",
    "Block",
    "Coder",
    "Damage",
    "Decoder",
    "Encoder",
    "Frequencies",
    "Integers",
    "Scored",
    "Shades",
    "Uniform",
    "Writable",
    "shades",
]
