"""The model of text made ready, and texts coded with it: compiled by numba where that is installed, by Python where it is not."""

from functools import cache, lru_cache
from types import FunctionType
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ....errors import FormatError
from . import kernel
from .tables import MIXED_MOST, beginnings, following, squash, stretch

LEAST_LINES, MOST_LINES = 12, 21  # powers of 2: 256 kB to 128 MB
LINES_PER_BYTE = 4  # lines made ready for each byte, before there are too many
PLACES = 20  # a power of 2: how many places of former bytes the match knows
MOST_EXPANSION = 4096  # times the length of a stream: no longer text comes out of it, which bounds the time to decode
ROOM = 64  # bytes that a stream may be longer than its text, before it is made again with more room
FLUSH = 4  # bytes that the decoder may look beyond the end of a stream
CONSTANT = {"squash", "stretch", "following", "rates", "trust"}
LEARNED = [name for name in kernel.State._fields if name not in CONSTANT | {"text"}]  # what changes while a text is read
LONG_TEXT = 2**27  # bytes that may be coded at once; five times as many are taken in memory

# Arrays are counted nowhere, because none is made in the kernel: three times as fast.
HOW: dict[str, Any] = {"cache": True, "_nrt": False, "forceinline": True, "error_model": "numpy"}


@cache
def compiled() -> dict[str, Any] | None:
    """The functions of the kernel compiled, by name; None without numba."""
    try:
        import numba
    except ImportError:
        return None
    made = dict(vars(kernel))
    for name, function in vars(kernel).items():
        if isinstance(function, FunctionType) and function.__module__ == kernel.__name__:
            made[name] = numba.njit(**HOW)(FunctionType(function.__code__, made, name))
    return made


def is_fast() -> bool:
    return compiled() is not None


@final
class Engine(NamedTuple):
    """A model that has read some text. It codes what follows, any number of times, and is itself not changed by that."""

    read: bytes
    fast: bool

    def encode(self, text: bytes) -> bytes:
        """What `decode` needs to give the text back."""
        room = len(text) + ROOM
        while True:
            out, coder = np.zeros(room, dtype=np.int16), new_coder(0)
            self._run(self._state(text), coder, out, len(self.read), len(self.read) + len(text), False)
            if coder[kernel.PLACE] <= room:
                return flushed(coder, out)
            room = int(coder[kernel.PLACE])

    def decode(self, stream: bytes, length: int) -> bytes:
        """The text of so many bytes."""
        if not 0 <= length <= min(LONG_TEXT, MOST_EXPANSION * (len(stream) + FLUSH)):
            raise FormatError(f"A stream of {len(stream)} bytes claims to hold a text of {length} bytes.")
        state = self._state(bytes(length))
        inside = np.frombuffer(stream + bytes(FLUSH), dtype=np.uint8).astype(np.int16)
        coder = new_coder(int.from_bytes((stream + bytes(FLUSH))[:FLUSH], "big"))
        coder[kernel.PLACE] = FLUSH
        self._run(state, coder, inside, len(self.read), len(self.read) + length, True)
        if not len(stream) <= coder[kernel.PLACE] <= len(stream) + FLUSH:
            raise FormatError(f"A text ends after {coder[kernel.PLACE]} bytes of a stream that has {len(stream)}: it is damaged.")
        return state.text[len(self.read) :].astype(np.uint8).tobytes()

    def _state(self, text: bytes) -> kernel.State:
        """The model after what was read, with room for this text."""
        start = primed(self.read, lines_for(len(self.read) + len(text)), self.fast)
        follow = np.frombuffer(text, dtype=np.uint8).astype(np.int16)
        learned = {name: getattr(start, name).copy() for name in LEARNED}
        return start._replace(text=np.concatenate([start.text, follow]), **learned)

    def _run(self, state: kernel.State, coder: Any, stream: Any, start: int, stop: int, decoding: bool) -> None:
        run(self.fast, state, coder, stream, start, stop, decoding)


def run(fast: bool, state: kernel.State, coder: Any, stream: Any, start: int, stop: int, decoding: bool) -> None:
    functions = compiled() if fast else None
    if functions is not None:
        functions["run"](state, coder, stream, start, stop, decoding)
    else:  # memoryviews of the same arrays: their elements are Python's own whole numbers
        views = kernel.State(*(memoryview(array) for array in state))
        kernel.run(views, memoryview(coder), memoryview(stream), start, stop, decoding)


def lines_for(length: int) -> int:
    """How many lines the model has for texts of so many bytes, as a power of 2."""
    return min(max((LINES_PER_BYTE * length).bit_length(), LEAST_LINES), MOST_LINES)


@lru_cache(maxsize=2)
def primed(text: bytes, lines: int, fast: bool) -> kernel.State:
    """The model after this text."""
    state = new_state(lines)._replace(text=np.frombuffer(text, dtype=np.uint8).astype(np.int16))
    run(fast, state, new_coder(0), np.zeros(0, dtype=np.int16), 0, len(text), False)
    return state


def new_coder(number: int) -> NDArray[np.int64]:
    """Both ends of the range, the place in the stream, and the number in the range that the decoder has read."""
    return np.array([0, kernel.MASK, 0, number], dtype=np.int64)


def flushed(coder: NDArray[np.int64], out: NDArray[np.int16]) -> bytes:
    """The stream, closed with as few bytes as name a number in the last range; the decoder reads zeros behind them."""
    low, _, place, _ = coder.tolist()
    last = b"" if low == 0 else bytes([(low >> 24) + 1])
    return out[:place].astype(np.uint8).tobytes() + last


def new_state(lines: int) -> kernel.State:
    """A model that has read nothing."""
    count = np.arange(256)
    steps = np.minimum(np.arange(kernel.STEPS) * kernel.STEP, 2 * MIXED_MOST)
    return kernel.State(
        text=np.zeros(0, dtype=np.int16),
        slots=np.zeros(kernel.LINE << lines, dtype=np.int32),
        maps=np.tile((beginnings() - (1 << 21)) << 10, kernel.CONTEXTS),
        order0=np.full(256, 1 << 15, dtype=np.int32),
        squash=squash(),
        stretch=stretch(),
        following=following(),
        rates=(131072 // (2 * count + 3)).astype(np.int32),
        trust=np.where(count < 30, 256 * (count + 1) // (count + 3), 250).astype(np.int32),
        weights=np.full(kernel.WEIGHT_SETS * kernel.INPUTS, kernel.FIRST_WEIGHT, dtype=np.int32),
        top=np.full(256 * kernel.SETS, 65536 // kernel.SETS, dtype=np.int32),
        inputs=np.zeros(kernel.INPUTS, dtype=np.int32),
        mixed=np.zeros(kernel.SETS, dtype=np.int32),
        errors=np.zeros(kernel.SETS, dtype=np.int32),
        chosen=np.zeros(kernel.SETS, dtype=np.int64),
        lines=np.zeros(kernel.CONTEXTS, dtype=np.int64),
        hashes=np.zeros(kernel.CONTEXTS, dtype=np.int64),
        words=np.zeros(8, dtype=np.int64),
        match=np.zeros(3, dtype=np.int64),
        recent=np.zeros(1 << PLACES, dtype=np.int32),
        agreed=np.full(64, 3 << 14, dtype=np.int32),
        refined=np.tile(squash()[steps], 2 << 16),
    )
