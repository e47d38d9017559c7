"""A second decoder of anyorder's archives that follows docs/format.md: one file, numpy and zstandard, nothing of ours.

It is slow and plain on purpose. What it gives back is what the document calls the content: an array, the files of a folder, the
bytes of a file, or the cells of a table as text with the description of their types.

    python tests/conformance/decoder.py ARCHIVE [FILE_OF_MODEL]
"""

import csv
import hashlib
import io
import json
import struct
import sys
import zlib
from datetime import datetime, timedelta
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import isqrt
from pathlib import Path

import numpy as np
import zstandard

MAGIC = b"\x89AOZ\r\n\x1a\x01"


def need(condition, what):
    if not condition:
        raise ValueError(what)


# The file: parts, their checks, blocks


def parts_of(raw):
    """(kind, number, content) of every part of a whole archive; anything damaged is an error here."""
    need(raw[:8] == MAGIC, "these are not the first bytes of an archive")
    at = 8
    while at < len(raw):
        head = raw[at : at + 15]
        letters, kind, number, length = struct.unpack("<2sBIQ", head)
        (check,) = struct.unpack("<I", raw[at + 15 : at + 19])
        need(letters == b"AO" and check == zlib.crc32(head + struct.pack("<Q", at)), f"no part begins at byte {at}")
        content = raw[at + 19 : at + 19 + length]
        need(struct.unpack("<I", raw[at + 19 + length : at + 23 + length])[0] == zlib.crc32(content), f"part at {at} is damaged")
        yield kind, number, content
        at += 23 + length


def unzipped(data):
    return zstandard.ZstdDecompressor(max_window_size=2**27).decompress(data) if data else b""


class Block:
    def __init__(self, raw):
        self.method, notes, stream, rest = struct.unpack("<BIII", raw[:13])
        start = 17 if self.method == 2 else 13
        self.check = struct.unpack("<I", raw[13:17])[0] if self.method == 2 else None
        need(self.method in (0, 1, 2) and start + notes + stream + rest == len(raw), "a block with parts of other lengths")
        self.notes = json.loads(unzipped(raw[start : start + notes])) if notes else {}
        self.stream = raw[start + notes : start + notes + stream]
        self.rest = unzipped(raw[start + notes + stream :])

    def checked(self, content):
        need(self.check is None or self.check == zlib.crc32(content), "a block does not give what was put into it")


def decode(raw, model=None):
    """The description, and the content: an array, {name: pixels or bytes}, bytes, or a list of columns of text.

    `model`: the bytes of the codec, if it is not inside.
    """
    parts = list(parts_of(raw))
    kinds = [kind for kind, _, _ in parts]
    need(kinds == [1] + [2] * (len(parts) - 3) + [3, 1], "the parts do not stand in their order")
    about = json.loads(parts[0][2])
    need(parts[0][2] == parts[-1][2], "the two descriptions differ")
    blocks = [content for _, _, content in parts[1:-2]]
    if about["model"] and about["model"]["inside"]:
        model, blocks = unzipped(blocks[0]), blocks[1:]
    codec = codec_of(model) if about["model"] else None
    need(codec is None or codec.fingerprint() == about["model"]["fingerprint"], "this is another model")
    count, each = about["count"], about["per_block"]
    sizes = [min(each, count - start) for start in range(0, count, each)]
    need(len(sizes) == len(blocks), "the archive has another number of blocks")
    found = [
        CONTENTS[about["form"]["kind"]](codec, Block(block), size, about["form"])
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return about, JOINED[about["form"]["kind"]](found, about["form"])


# The range coder


class Stream:
    """Yes or no, one after the other, each with its probability."""

    def __init__(self, content):
        self.words = [*np.frombuffer(content, "<u4").tolist(), 0, 0]
        self.lower, self.range, self.point, self.at = 0, 2**64 - 1, self.words[0] << 32 | self.words[1], 2

    def answer(self, chance):
        none = 1.0 - chance
        no = int(none * ((2**24 - 2) / (none + chance))) + 1  # of 2^24
        scale = self.range >> 24
        quantile = ((self.point - self.lower) % 2**64) // scale
        need(quantile < 2**24, "bits that no encoder writes")
        yes = quantile >= no
        self.lower = (self.lower + scale * (no if yes else 0)) % 2**64
        self.range = scale * (2**24 - no if yes else no)
        if self.range < 2**32:
            word = self.words[self.at] if self.at < len(self.words) else 0
            self.at += 1
            self.lower, self.range, self.point = (self.lower << 32) % 2**64, self.range << 32, (self.point << 32) % 2**64 | word
        return yes

    def symbols(self, below, size):
        """One symbol a cell, found by bisection; `below(symbols)` are the cumulative frequencies, `size` an array."""
        low = np.zeros(len(size), dtype=np.int64)
        under, over = np.zeros_like(low), np.full_like(low, 2**24)
        for bit in reversed(range((int(size.max(initial=1)) - 1).bit_length())):
            middle = low + (1 << bit)
            counts = below(middle)
            chance = (over - counts) / (over - under)
            upper = np.zeros(len(size), dtype=bool)
            for cell in np.flatnonzero(middle < size):
                upper[cell] = self.answer(float(chance[cell]))
            low, under, over = np.where(upper, middle, low), np.where(upper, counts, under), np.where(upper, over, counts)
        return low

    def uniform(self, size):
        return self.symbols(lambda symbol: np.minimum(symbol, size) * 2**24 // size, size)

    def bits(self, count):
        out = np.zeros(len(count), dtype=np.int64)
        for start in range(0, int(count.max(initial=0)), 16):
            here = count > start
            out[here] |= self.uniform(1 << np.minimum(16, count[here] - start)) << start
        return out

    def alike(self, size):
        lower = np.array([max(int(n - 1).bit_length() - 16, 0) for n in size], dtype=np.int64)
        high = self.uniform(((size - 1) >> lower) + 1)
        return high << lower | self.bits(lower)

    def signed(self, cells):
        folded = self.bits(self.uniform(np.full(cells, 64)))
        return np.where(folded & 1, ~(folded >> 1), folded >> 1)


# Tables of whole numbers


def powers(base, count):
    out = [Decimal(1)]
    for _ in range(count - 1):
        out.append(out[-1] * base)
    return out


@cache
def sigmoid():
    with localcontext(Context(prec=40)):
        above = [int(2**20 / (1 + power)) for power in powers((Decimal(-1) / 2**11).exp(), 2**15 + 1)]
    return np.array([2**20 - value - 1 for value in above[:0:-1]] + above[:-1])


@cache
def exponential():
    with localcontext(Context(prec=40)):
        return np.array([int(2**16 * power + Decimal("0.5")) for power in powers((Decimal(-1) / 64).exp(), 1024)])


@cache
def steepness(least):
    with localcontext(Context(prec=40)):
        start, rising = (Decimal(1) / 128 - 17).exp(), powers((Decimal(1) / 64).exp(), 2048)
        return np.array([int(2**16 / (Decimal(least) + (1 + start * power).ln())) for power in rising])


def reached(z):
    return sigmoid()[z.clip(-(2**15), 2**15 - 1) + 2**15]


def on_scale(numerator, denominator):
    return round((Fraction(numerator, denominator) - 1) * 2**20)


def weights(logits):
    return exponential()[np.minimum((logits.max(-1, keepdims=True) - logits) >> 4, 1023)]


def binary(stream, logit):
    zero = 1 + ((2**24 - 2) * reached(-logit << 1) >> 20)
    return stream.symbols(lambda s: np.where(s <= 0, 0, np.where(s >= 2, 2**24, zero)), np.full(len(logit), 2))


def scored(stream, scores):
    weight, size = weights(scores), scores.shape[1]
    share = np.cumsum(weight, -1) * (2**24 - size) // weight.sum(-1, keepdims=True) + np.arange(1, size + 1)
    table = np.concatenate([np.zeros((len(scores), 1), dtype=np.int64), share], axis=1)
    return stream.symbols(lambda s: np.take_along_axis(table, s.clip(0, size)[:, None], 1)[:, 0], np.full(len(scores), size))


class Shades:
    """A mixture of logistic distributions over 0 .. size - 1; all parameters (cell, component)."""

    def __init__(self, weight, place, raw, size, least):
        self.weight, self.place, self.size = weight, place, size
        self.steep = steepness(least)[((raw >> 4) + 1024).clip(0, 2047)]
        self.edges = np.array([on_scale(2 * k - 1, size - 1) for k in range(size + 1)])

    def reached(self, symbol):
        edge = self.edges[symbol.clip(0, self.size)][:, None]
        return reached((edge - self.place) * self.steep >> 25)

    def below(self, symbol):
        inside = symbol + ((2**24 - self.size) * (self.weight * self.reached(symbol)).sum(-1) >> 36)
        return np.where(symbol <= 0, 0, np.where(symbol >= self.size, 2**24, inside))

    def read(self, stream):
        return stream.symbols(self.below, np.full(len(self.place), self.size))

    def weights_given(self, symbol):
        above = np.where((symbol >= self.size - 1)[:, None], 2**20, self.reached(symbol + 1))
        mass = above - np.where((symbol <= 0)[:, None], 0, self.reached(symbol))
        likely = self.weight * (mass + 1)
        return (likely << 16) // np.maximum(likely.sum(-1, keepdims=True), 1)


def starts(count):
    if count == 1:
        return np.array([round(Fraction(-8, 10) * 2**20)])
    return np.array([round((Fraction(16 * k, 10 * (count - 1)) - Fraction(8, 10)) * 2**20) for k in range(count)])


def mixed(logits):
    weight = weights(logits)
    return (weight << 16) // weight.sum(-1, keepdims=True)


def grey(stream, numbers, head):
    logits, place, raw = np.split(numbers, 3, axis=-1)
    at = (place << 10) + starts(logits.shape[1])
    return Shades(mixed(logits), at, raw, head["levels"], str(head["min_scale"])).read(stream)


def colour(stream, numbers, head):
    levels, count = head["shades"], head["components"]
    logits, rest = numbers[:, :count], numbers[:, count:].reshape(len(numbers), count, 9)
    weight, found = mixed(logits), []
    scale = np.array([on_scale(2 * level, levels - 1) for level in range(levels)])
    for channel, slopes in enumerate(((), (0,), (1, 2))):
        at = (rest[..., channel] << 10) + starts(count)
        for slope, known in zip(slopes, found, strict=True):
            at = at + (rest[..., 6 + slope] * scale[known][:, None] >> 10)
        shades = Shades(weight, at, rest[..., 3 + channel], levels, str(head["min_scale"]))
        found.append(shades.read(stream))
        weight = shades.weights_given(found[-1])
    return (found[0] * levels + found[1]) * levels + found[2]


HEADS = {
    "bernoulli": lambda stream, numbers, head: binary(stream, numbers[:, 0]),
    "categorical": lambda stream, numbers, head: scored(stream, numbers),
    "logistic_mixture": grey,
    "colour_mixture": colour,
}


# Networks of whole numbers: float64 holds every number in them exactly


class Layer:
    def __init__(self, tensors, name):
        self.numerator, power, offset = (tensors[f"{name}.{part}"] for part in ("numerator", "power", "offset"))
        scale = 2.0 ** -power.astype(np.float64)
        self.weight, self.offset = self.numerator * scale[:, None, None, None], offset * scale

    def sums(self, h, stride=1):
        """(image, channel, row, column) to the same; zeros around where the kernel has a middle."""
        side = self.weight.shape[2]
        edge = side // 2 if stride == 1 else 0
        h = np.pad(h, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
        rows, columns = ((n - side) // stride + 1 for n in h.shape[2:])
        out = self.offset[:, None, None] * np.ones((len(h), 1, rows, columns))
        for dy in range(side):
            for dx in range(side):
                part = h[:, :, dy : dy + stride * rows : stride, dx : dx + stride * columns : stride]
                out += np.einsum("oc,nchw->nohw", self.weight[:, :, dy, dx], part, optimize=True)
        return out


def active(sums):
    return np.rint(sums).clip(0, 255)


def said(sums):
    """What a network says, in steps of 1/1024."""
    return np.rint((sums * 16).clip(-32767, 32767)).astype(np.int64)


def spread(h, factor):
    """Four maps of one size to one map of twice the height and width: (c, 2, 2) above each other become neighbours."""
    n, c, rows, columns = h.shape
    h = h.reshape(n, c // factor**2, factor, factor, rows, columns).transpose(0, 1, 4, 2, 5, 3)
    return h.reshape(n, c // factor**2, rows * factor, columns * factor)


def gathered(h, factor):
    n, c, rows, columns = h.shape
    h = h.reshape(n, c, rows // factor, factor, columns // factor, factor).transpose(0, 1, 3, 5, 2, 4)
    return h.reshape(n, c * factor**2, rows // factor, columns // factor)


class UNet:
    def __init__(self, tensors, sizes, domain):
        self.shape, self.widths, self.depth = sizes["shape"], sizes["widths"], sizes["depth"]
        self.patch, self.around = sizes["patch"], sizes.get("around", [])
        self.shades = domain.get("shades", 0) if domain["kind"] == "colour" else 0
        self.step = 255 // ((self.shades or domain["levels"]) - 1)
        self.layer = lambda name: Layer(tensors, name)

    def blocks(self, name, count, h):
        for k in range(count):
            h = active(self.layer(f"{name}.outer.{k}").sums(active(self.layer(f"{name}.inner.{k}").sums(h))) + h)
        return h

    def maps(self, x, given):
        """What the network is shown, and how many of these maps come before those of what is around."""
        known, seen = given.astype(np.int64), x
        if self.shades:
            seen = np.concatenate([x // self.shades**2, x // self.shades % self.shades, x % self.shades], axis=-1)
        known = known.transpose(0, 3, 1, 2)
        seen = seen.transpose(0, 3, 1, 2) * self.step * known
        maps = [seen, 128 * known, np.full_like(known[:, :1], 64)]
        alone = sum(part.shape[1] for part in maps) * self.patch**2
        for side in self.around:
            sums, count = boxes(seen, side), boxes(known, side)
            every = np.maximum(count, 1)
            maps += [(2 * sums + every) // (2 * every), 128 * count // side**2]
        unit = self.patch * 2 ** (len(self.widths) - 1)
        maps = np.pad(np.concatenate(maps, axis=1), ((0, 0), (0, 0), (0, -self.shape[0] % unit), (0, -self.shape[1] % unit)))
        return gathered(maps.astype(np.float64), self.patch), alone

    def __call__(self, x, given):
        """Numbers in steps of 1/1024: (image, row, column, number)."""
        maps, alone = self.maps(x, given)
        h, kept, deep = active(self.layer("first").sums(maps)), [], len(self.widths) - 1
        for k in range(deep):
            kept.append(self.blocks(f"down.{k}", self.depth, h))
            h = active(self.layer(f"shrink.{k}").sums(kept[-1], stride=2))
        h = self.blocks("middle", 2 * self.depth, h)
        for k in reversed(range(deep)):
            h = active(spread(self.layer(f"grow.{k}").sums(h), 2) + kept[k])
            h = self.blocks(f"up.{k}", self.depth, h)
        out = said(self.layer("last").sums(np.concatenate([h, maps[:, alone:]], axis=1)))
        out = out.repeat(self.patch, 2).repeat(self.patch, 3)[:, :, : self.shape[0], : self.shape[1]]
        return out.transpose(0, 2, 3, 1)


def boxes(maps, side):
    edge = side // 2
    wide = np.pad(maps, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
    return sum(wide[:, :, dy : dy + maps.shape[2], dx : dx + maps.shape[3]] for dy in range(side) for dx in range(side))


def hats(levels, knots):
    """(level, knot): how levels share evenly spaced knots, in steps of 1/128."""
    knots = min(levels, knots)
    if knots < 2:
        return np.full((levels, 1), 128)
    table = np.zeros((levels, knots), dtype=np.int64)
    for level in range(levels):
        knot, over = divmod(level * (knots - 1) * 128 // (levels - 1), 128)
        table[level, knot] = 128 - over
        if over:
            table[level, knot + 1] = over
    return table


class Columns:
    """The network of a table; `plain` says of which columns every level has its own input and score."""

    def __init__(self, tensors, levels, plain, context, after):
        self.first, self.last = Layer(tensors, "first"), Layer(tensors, "last")
        self.shown = [hats(n, n if p else 8) for n, p in zip(levels, plain, strict=True)] + [hats(n, 8) for n in context]
        self.told = [hats(n, n if p else 16) for n, p in zip(levels, plain, strict=True)]
        self.seen_from = [*range(1, len(levels) + 1), *after]
        self.input_at = np.cumsum([0, *(table.shape[1] for table in self.shown)])
        self.output_at = np.cumsum([0, *(table.shape[1] for table in self.told)])
        ends = np.cumsum([0, *levels])
        self.start = [tensors["start"][a:b].astype(np.int64) for a, b in pairwise(ends)]

    def scores(self, column, codes):
        """Of one column, in steps of 1/1024: (row, level); `codes` of all that may be seen, (row, thing), -1 where unknown."""
        weight = self.first.weight[:, :, 0, 0]
        sums = np.tile(64 * weight[:, self.input_at[-1] + column] + self.first.offset, (len(codes), 1))
        for thing, table in enumerate(self.shown):
            if self.seen_from[thing] <= column:
                code = codes[:, thing]
                shown = table[code.clip(0)] * (code >= 0)[:, None]
                sums += shown @ weight[:, self.input_at[thing] : self.input_at[thing + 1]].T
        part = slice(self.output_at[column], self.output_at[column + 1])
        knots = said(active(sums) @ self.last.weight[part, :, 0, 0].T + self.last.offset[part])
        return np.rint(knots @ self.told[column].T / 128 + 32 * self.start[column]).clip(-32767, 32767).astype(np.int64)


# Codecs


TYPES = {"I8": "i1", "U8": "u1", "I16": "<i2", "I32": "<i4", "F32": "<f4", "F16": "<f2"}


def safetensors(raw):
    """(description, tensors) of a safetensors file."""
    (length,) = struct.unpack("<Q", raw[:8])
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    about = json.loads(header.pop("__metadata__")["anyorder"])
    tensors = {}
    for name, item in header.items():
        first, last = item["data_offsets"]
        tensors[name] = np.frombuffer(data[first:last], TYPES[item["dtype"]]).reshape(item["shape"])
    return about, tensors


def below(prefix, tensors):
    return {name[len(prefix) :]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def codec_of(raw):
    about, tensors = safetensors(raw)
    need(about["format"] == 1, "a codec of a later format")
    need(about["kind"] != "text", "a codec of text, which this decoder does not have")
    return {"codec": ImageCodec, "table codec": TableCodec}[about["kind"]](about, tensors)


def digest(first, models):
    found, told = hashlib.sha256(), list(first)
    names = {"int8": "torch.int8", "int16": "torch.int16", "int32": "torch.int32"}
    for tensors, about in models:
        told.extend(about)
        for name, tensor in sorted(tensors.items()):
            told.append([name, names[tensor.dtype.name], tensor.shape])
            found.update(tensor.tobytes())
    found.update(json.dumps(told).encode())
    return found.hexdigest()[:32]


class ImageCodec:
    def __init__(self, about, tensors):
        self.images, self.stages = about["images"], about["stages"]
        self.tensors = [below(f"{k}.", tensors) for k in range(len(self.stages))]
        self.networks = [
            UNet(below("network.", mine), stage["network"], stage["domain"])
            for mine, stage in zip(self.tensors, self.stages, strict=True)
        ]
        need(not self.images["base"], "values in digits are not coded")
        for stage, network in zip(self.stages, self.networks, strict=True):
            need(self.answers(stage, network) == stage["answers"], "a network gives other answers than where it was made")

    @staticmethod
    def answers(stage, network):
        """The checksum of what it says of three made-up rows."""
        levels = network.shades**3 or stage["domain"]["levels"]
        row, place = np.arange(3)[:, None], np.arange(stage["variables"])
        x, given = (7919 * place + 104729 * row) % levels, (31 * place + 17 * row) % 3 == 0
        shape = (3, *network.shape)
        return zlib.crc32(network(x.reshape(shape), given.reshape(shape)).astype("<i4").tobytes())

    def fingerprint(self):
        image = [self.images[key] for key in ("height", "width", "channels", "levels")]
        first = [[*image, bool(self.images.get("colours")), self.images["base"]]]
        models = []
        for stage, tensors in zip(self.stages, self.tensors, strict=True):
            plan, sizes = stage["plan"], stage["network"]
            about = [plan["stride"], plan["shape"], plan["order"], plan["places"], sorted(stage["head"].items())]
            told = [sizes[key] for key in ("shape", "widths", "depth", "patch", "around") if key in sizes]
            models.append((tensors, [about, told]))
        return digest(first, models)

    def decode(self, content, count, unit):
        """(image, row, column, channel) values."""
        stream, images = Stream(content), self.images
        variables = 1 if images["colours"] else images["channels"]
        pixels = np.zeros((count, images["height"], images["width"], variables), dtype=np.int64)
        for stage, network in zip(self.stages, self.networks, strict=True):
            plan = stage["plan"]
            lattice = pixels[:, :: plan["stride"], :: plan["stride"]]
            need(list(lattice.shape[1:]) == plan["shape"], "a plan of another lattice")
            order, places = plan["order"], plan["places"]
            new = order[len(order) - places[-1] :]
            given = np.ones(len(order), dtype=bool)
            given[new] = False
            for first, last in pairwise(places):
                known = np.broadcast_to(given.reshape(plan["shape"]), lattice.shape)
                numbers = network(lattice, known).reshape(count, len(order), -1)
                now = sorted(new[first:last])
                found = HEADS[stage["head"]["kind"]](stream, numbers[:, now].reshape(count * len(now), -1), stage["head"])
                flat = lattice.reshape(count, -1)  # a copy where the lattice is part of the image
                flat[:, now] = found.reshape(count, len(now))
                lattice[:] = flat.reshape(lattice.shape)
                given[now] = True
        if images["colours"]:
            levels = images["levels"]
            pixels = pixels // np.array([levels**2, levels, 1]) % levels
        return pixels * unit


class TableCodec:
    def __init__(self, about, tensors):
        self.about, self.tensors = about, below("model.", tensors)
        self.columns = [
            None if item is None else Column(item, tensors.get(f"values.{place}")) for place, item in enumerate(about["columns"])
        ]
        self.coded = [(place, column) for place, column in enumerate(self.columns) if column is not None]
        self.told, some = about["told"], [column for _, column in self.coded]
        self.changing = [k for k, column in enumerate(some) if column.change]
        context = [some[k].level_count for k in (*self.told, *self.changing)]
        after = [0] * len(self.told) + [k + 1 for k in self.changing]
        network = below("network.", self.tensors)
        self.network = Columns(network, [c.symbols for c in some], [c.symbols <= 24 for c in some], context, after)
        need(about["network"]["context"] == context and about["network"]["after"] == after, "a network of other columns")
        levels = [column.symbols for column in some]
        need(self.answers(levels, context) == about["answers"], "a network gives other answers than where it was made")

    def answers(self, levels, context):
        """The checksum of what it says of three made-up rows, columns of as many symbols together."""
        row, place, code = np.arange(3)[:, None], np.arange(len(levels)), np.arange(len(context))
        known = (31 * place + 17 * row) % 3 == 0
        symbols = np.where(known, (7919 * place + 104729 * row) % np.array(levels), -1)
        around = (7919 * code + 104729 * row) % np.array(context, dtype=np.int64)
        things = np.concatenate([symbols, around], axis=1)
        order = [k for size in dict.fromkeys(levels) for k, n in enumerate(levels) if n == size]
        said = [self.network.scores(k, things) for k in order]
        return zlib.crc32(np.concatenate(said, axis=1).astype("<i4").tobytes())

    def fingerprint(self):
        def written(column, item):
            steps = b"" if column.planes is None else column.planes
            return [sorted(item.items()), steps.hex()]

        pairs = zip(self.columns, self.about["columns"], strict=True)
        columns = [None if column is None else written(column, item) for column, item in pairs]
        sizes = self.about["network"]
        return digest([columns, self.told], [(self.tensors, [[sizes[key] for key in ("width", "context", "after")]])])

    def turns(self, rows):
        """Which rows are coded together, turn by turn."""
        if not self.told and not self.changing:
            yield from (np.arange(start, min(start + 512, rows)) for start in range(0, rows, 512))
            return
        lanes = -(-rows // min(256, max(16, 3 * isqrt(rows) // 2)))
        length = -(-rows // lanes)
        first = np.arange(0, rows, length)
        for turn in range(length):
            yield first[first + turn < rows] + turn

    def decode(self, content, rows):
        """(numbers, kinds) of every coded column; a kind is 0 for a number, 1 for a gap, 2 for an odd cell."""
        stream, count = Stream(content), len(self.coded)
        number, kind = np.zeros((rows, count), dtype=np.int64), np.zeros((rows, count), dtype=np.int64)
        levels, before = None, None
        for some in self.turns(rows):
            if before is None:
                before = np.tile(np.array([column.start for _, column in self.coded], dtype=np.int64), (len(some), 1))
                levels = np.full((len(some), count), -1)
            before, levels = before[: len(some)], levels[: len(some)]
            things = np.full((len(some), count + len(self.told) + len(self.changing)), -1)
            things[:, count : count + len(self.told)] = levels[:, self.told]
            now = np.full((len(some), count), -1)
            for k, (_, column) in enumerate(self.coded):
                symbol = scored(stream, self.network.scores(k, things))
                found = column.read(stream, symbol, before[:, k])
                valued = (symbol != 1) & (symbol != 2)
                things[:, k], now[:, k] = symbol, column.level(found, symbol)
                if column.change:
                    things[:, count + len(self.told) + self.changing.index(k)] = now[:, k]
                number[some, k], kind[some, k] = found, np.where(valued, 0, symbol)
                before[valued, k] = found[valued]
            levels = now
        return number, kind


class Column:
    def __init__(self, item, planes):
        self.form, self.change, self.start = item["format"], item["change"], item["start"]
        self.edges = np.cumsum(np.array(item["edges"], dtype=np.int64))
        self.levels = np.cumsum(np.array(item["levels"], dtype=np.int64))
        self.planes = None if planes is None else planes.tobytes()
        self.values = None if planes is None else np.cumsum(planes.reshape(8, -1).T.copy().view("<i8")[:, 0])
        self.symbols = 3 + len(self.edges) - 1
        self.level_count = 3 + len(self.levels) + 1 if self.change else self.symbols

    def read(self, stream, symbol, before):
        out, inside, elsewhere = np.zeros_like(symbol), symbol >= 3, symbol == 0
        bin_ = symbol[inside] - 3
        width, place = np.diff(self.edges)[bin_], np.zeros_like(bin_)
        place[width > 1] = stream.alike(width[width > 1])
        told = self.edges[bin_] + place
        told = told if self.values is None else self.values[told]
        out[inside] = told + before[inside] if self.change else told
        if elsewhere.any():
            out[elsewhere] = stream.signed(int(elsewhere.sum())) + self.start
        return out

    def level(self, number, symbol):
        if not self.change:
            return symbol
        near = 3 + np.searchsorted(self.levels, number, side="right")
        return np.where((symbol == 1) | (symbol == 2), symbol, near)

    def text(self, number):
        form = self.form
        if form["kind"] == "words":
            return form["words"][number]
        if form["kind"] == "moments":
            moment = datetime(1970, 1, 1) + (timedelta(seconds=number) if form["mark"] else timedelta(days=number))
            return moment.isoformat(form["mark"]) if form["mark"] else moment.date().isoformat()
        digits = str(abs(number)).rjust(form["most"] + 1, "0")
        whole, decimals = digits[: len(digits) - form["most"]], digits[len(digits) - form["most"] :]
        decimals = decimals.rstrip("0").ljust(form["least"], "0")
        return ("-" if number < 0 else "") + whole + ("." + decimals if decimals else "")


# What is in a block


def values_of(codec, block, count):
    unit = block.notes.get("unit", codec.images["unit"])
    pixels = codec.decode(block.stream, count, unit).astype(np.uint8)
    return pixels[..., 0] if codec.images["channels"] == 1 else pixels


def array_block(codec, block, count, form):
    shape, kind = (count, *form["shape"][1:]), np.dtype(form["dtype"])
    if block.method == 0:
        return np.frombuffer(block.rest, kind).reshape(shape)
    found = values_of(codec, block, count).astype(kind).reshape(shape)
    block.checked(found.tobytes())
    return found


def folder_block(codec, block, count, form):
    """{name: the bytes of a file, or (mode, pixels) of an image}; black and white as 0 and 255."""
    whole, names = {int(k): n for k, n in block.notes.get("whole", {}).items()}, block.notes["names"]
    need(len(names) == count, "a block with another number of files")
    images = iter(values_of(codec, block, count - len(whole))) if len(whole) < count else iter(())
    rest, mode = io.BytesIO(block.rest), block.notes.get("mode", "L")
    files = [rest.read(whole[k]) if k in whole else (mode, next(images)) for k in range(count)]
    block.checked(b"".join(file if isinstance(file, bytes) else file[1].tobytes() for file in files))
    return dict(zip(names, files, strict=True))


def texts_in(part):
    """The texts of a part, None where there is a gap."""
    if not part:
        return []
    (count,) = struct.unpack("<I", part[:4])
    sizes = np.frombuffer(part, np.uint8, 4 * count, 4).reshape(4, count).T.copy().view("<u4")[:, 0].tolist()
    at, out = 4 + 4 * count, []
    for size in sizes:
        out.append(None if size == 0 else part[at : at + size - 1].decode("utf-8", "surrogatepass"))
        at += max(size - 1, 0)
    need(at == len(part), "a part with texts of another length")
    return out


def part_of(texts):
    """The same bytes again, for the checksum."""
    raw = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    sizes = np.array([0 if text is None else len(text) + 1 for text in raw], dtype="<u4")
    planes = sizes.view(np.uint8).reshape(-1, 4).T.tobytes()
    return struct.pack("<I", len(raw)) + planes + b"".join(text for text in raw if text) if raw else b""


def table_block(codec, block, rows, form):
    coded = codec.coded if block.method else []
    lengths = block.notes.get("odd", [0] * len(coded)) + block.notes["raw"]
    ends = np.cumsum([0, *lengths]).tolist()
    need(ends[-1] == len(block.rest), "a block with parts of other lengths")
    parts = [texts_in(block.rest[a:b]) for a, b in pairwise(ends)]
    if not block.method:
        return parts
    number, kind = codec.decode(block.stream, rows)
    odd, raw, columns = parts[: len(coded)], iter(parts[len(coded) :]), [None] * len(codec.columns)
    for k, (place, column) in enumerate(coded):
        left = iter(odd[k])
        columns[place] = [
            column.text(n) if what == 0 else None if what == 1 else next(left)
            for n, what in zip(number[:, k].tolist(), kind[:, k].tolist(), strict=True)
        ]
    columns = [next(raw) if column is None else column for column in columns]
    block.checked(b"".join(map(part_of, columns)))
    return columns


def joined_columns(blocks, form):
    return [[text for part in parts for text in part] for parts in zip(*blocks, strict=True)]


def csv_file(blocks, form):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=form["delimiter"], lineterminator=form["newline"], quoting=form["quoting"])
    writer.writerow(form["header"])
    writer.writerows(zip(*([text or "" for text in column] for column in joined_columns(blocks, form)), strict=True))
    text = out.getvalue()
    return (text if form["end"] else text.removesuffix(form["newline"])).encode(form["encoding"])


CONTENTS = {
    "array": array_block,
    "folder": folder_block,
    "csv": table_block,
    "frame": table_block,
    "arrow": table_block,
    "bytes": lambda codec, block, count, form: block.rest,
}
JOINED = {
    "array": lambda blocks, form: np.concatenate([*blocks, np.zeros((0, *form["shape"][1:]), np.dtype(form["dtype"]))]),
    "folder": lambda blocks, form: {name: file for block in blocks for name, file in block.items()},
    "csv": csv_file,
    "frame": joined_columns,
    "arrow": joined_columns,
    "bytes": lambda blocks, form: b"".join(blocks),
}


def attached_codec(raw):
    """The codec in the file of a model, such as those that come with the package."""
    (length,) = struct.unpack("<Q", raw[:8])
    first, last = json.loads(raw[8 : 8 + length])["attached/codec"]["data_offsets"]
    return raw[8 + length + first : 8 + length + last]


def main(archive, *models):
    """Decode an archive, with the model in this file if it is not inside, and show the beginning of what is in it."""
    codecs = [attached_codec(Path(model).read_bytes()) for model in models]
    about, content = decode(Path(archive).read_bytes(), *codecs)
    print(json.dumps(about["form"])[:500])
    print(repr(content)[:2000])


if __name__ == "__main__":
    main(*sys.argv[1:])
