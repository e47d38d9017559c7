"""Files of images that hold pixels of at most eight bits and nothing else: those that may be written anew."""

import struct
from collections.abc import Callable
from typing import NamedTuple


class Format(NamedTuple):
    """A format that keeps every pixel."""

    name: str
    only_pixels: Callable[[bytes], bool]  # whether a file holds pixels of at most eight bits and nothing else


def only_pixels_in_png(raw: bytes) -> bool:
    at, last = 8, b""
    while last != b"IEND" and at + 12 <= len(raw):
        length, last = struct.unpack_from(">I4s", raw, at)
        if last not in (b"IHDR", b"IDAT", b"IEND", b"pHYs") or (last == b"IHDR" and raw[at + 16 : at + 17] > b"\x08"):
            return False
        at += 12 + length
    return last == b"IEND" and at == len(raw)


def only_pixels_in_bmp(raw: bytes) -> bool:
    """The plain form: a head of 40 bytes, a palette for up to 8 bits, rows of whole words."""
    if len(raw) < 54:
        return False
    start, head, width, height, _, bits, compression = struct.unpack_from("<IIiiHHI", raw, 10)
    palette = 0 if bits == 24 else 4 * 2**bits
    rows = (bits * width + 31) // 32 * 4 * abs(height)
    return bits in (1, 8, 24) and head == 40 and not compression and start == 54 + palette and len(raw) == start + rows


WRITTEN = {".png": Format("PNG", only_pixels_in_png), ".bmp": Format("BMP", only_pixels_in_bmp)}
