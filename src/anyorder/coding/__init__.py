"""Bits: what an archive is made of. Knows nothing of models."""

from .container import Archive, ArchiveWriter, Block, Damage

__all__ = ["Archive", "ArchiveWriter", "Block", "Damage"]
