"""The model and the coder, bit by bit, in whole numbers: run as it stands by Python, or compiled by numba, with equal results.

A byte is coded as eight bits, the highest first. For each bit every context gives two opinions, of how often a one came and of
what came after such a history; the longest match gives two more. A layer of mixers, each with weights for its own circumstances,
and one more mixer on top join them; two tables correct what comes out by what really happened.
"""

from typing import Any, NamedTuple, no_type_check

from .tables import LOGIT_MOST, MIXED_MOST

Numbers = Any  # an array of numpy, or a memoryview of one

CONTEXTS = 14  # those that are looked up in `slots`
PER = 2  # inputs of each
ORDER_0, ALWAYS, MATCHED, SURE = range(CONTEXTS * PER, CONTEXTS * PER + 4)  # the other inputs
INPUTS = CONTEXTS * PER + 4
SETS = 5  # mixers of the first layer
BASES = (0, 2048, 4096, 6144, 8192)  # where the sets of weights of each begin
WEIGHT_SETS = 10240
LINE = 16  # slots of a line: what it is for, and the 15 nodes of half a byte
MASK = 0xFFFFFFFF
MATCH_LEAST, MATCH_MOST = 6, 63  # bytes that agree before a match is believed, and those that are counted
WORD, LAST, LAST_BUT_ONE, LINE_ABOVE, THIS_LINE, COLUMN, FIRST = range(7)  # of `words`
FOLLOWS, LENGTH, EXPECTED = range(3)  # of `match`
LOW, HIGH, PLACE, NUMBER = range(4)  # of the coder
FIRST_WEIGHT = 7864  # .12, in 1 / 65536
MOST_WEIGHT = 1 << 23  # 128
TOP_RATE = 8
RATE, MORE_RATE, HALF_RATE = 12, 50, 1 << 14  # how fast the mixers learn: at last, more at first, how long
LIMIT = 250  # of what a slot counts
STEPS = 33  # of a correcting table, from one end of the logits to the other
STEP = 176  # 2 * 2816 / 32


class State(NamedTuple):
    """All that the model remembers, as arrays of signed whole numbers, whose elements are Python's own on the other path."""

    text: Numbers  # int16: all bytes, those that are known so far at the beginning
    slots: Numbers  # int32: lines of slots: probability - 2^15:16 count:8 history:8
    maps: Numbers  # int32: probability - 2^21:22 count:10 of every history, for each context
    order0: Numbers  # int32: probability of each node of the next byte
    squash: Numbers  # int32: see `tables`
    stretch: Numbers  # int32
    following: Numbers  # int16: histories after a zero and after a one
    rates: Numbers  # int32: 65536 / (count + 1.5)
    trust: Numbers  # int32: how much the opinion of a slot counts after so many bits
    weights: Numbers  # int32, first layer
    top: Numbers  # int32, second layer
    inputs: Numbers  # int32
    mixed: Numbers  # int32: what the first layer says, as logits
    chosen: Numbers  # int64: which weights each mixer uses
    lines: Numbers  # int64: where the line of every context begins
    hashes: Numbers  # int64: of every context
    words: Numbers  # int64: what the contexts are made of besides the last bytes
    match: Numbers  # int64: where the match goes on, its length, the byte it expects
    recent: Numbers  # int32: where each hash of the last bytes was met last
    agreed: Numbers  # int32: of matches by length, how likely the expected bit is
    refined: Numbers  # int32: the two correcting tables
    errors: Numbers  # int32: probabilities of the first layer, 16 bits


@no_type_check
def hashed(a, b):
    """A 32-bit hash of two numbers below 2^32."""
    h = ((a ^ 0x5BD1E995) * 0x2C1B3C6D + b * 0x297A2D39 + (a >> 15)) & MASK
    h = ((h ^ (h >> 15)) * 0x3243F6A9) & MASK
    return h ^ (h >> 13)


@no_type_check
def find(slots, wanted):
    """The line of this hash, or the least used one near to it, cleared."""
    wanted = (wanted & 0x3FFFFFFF) | 0x40000000
    lines = len(slots) // LINE
    first = (wanted * 0x2545F491 >> 8) & (lines - 1)
    least, chosen = 1 << 20, 0
    for k in range(4):
        at = (first ^ k) * LINE
        if slots[at] == wanted:
            return at
        used = slots[at + 1] >> 8 & 255 if slots[at] else -1
        if used < least:
            least, chosen = used, at
    for k in range(1, LINE):
        slots[chosen + k] = 0
    slots[chosen] = wanted
    return chosen


@no_type_check
def begin_byte(s, at):
    """Contexts of the byte that comes at this place."""
    text, h = s.text, s.hashes
    c1 = text[at - 1] if at > 0 else 0
    c2 = text[at - 2] if at > 1 else 0
    c3 = text[at - 3] if at > 2 else 0
    c4 = text[at - 4] if at > 3 else 0
    four = c1 | c2 << 8 | c3 << 16 | c4 << 24
    eight = 0
    if at > 7:
        eight = text[at - 5] | text[at - 6] << 8 | text[at - 7] << 16 | text[at - 8] << 24
    update_words(s, c1, at)
    word, before, column, first = s.words[WORD], s.words[LAST], s.words[COLUMN], s.words[FIRST]
    line = s.words[LINE_ABOVE]
    above = text[line + column] if line + column < at else 0
    h[0] = c1
    h[1] = four & 0xFFFF
    h[2] = four & 0xFFFFFF
    h[3] = four
    h[4] = hashed(four, eight & 0xFF)
    h[5] = hashed(four, eight & 0xFFFF)
    h[6] = hashed(four, eight)
    h[7] = hashed(word, c1)
    h[8] = hashed(word, before)
    h[9] = hashed(before, hashed(s.words[LAST_BUT_ONE], word))
    h[10] = hashed(above, c1 | 1 << 9)
    h[11] = hashed(above | min(column, 255) << 8, first)
    h[12] = hashed(c2 | c3 << 8, 77)
    h[13] = hashed(word, first | c1 << 8)
    for i in range(CONTEXTS):
        h[i] = hashed(h[i], i + 1)
        s.lines[i] = find(s.slots, h[i])
    find_match(s, at, hashed(four, eight & 0xFFFF))


@no_type_check
def update_words(s, c, at):
    """The word that is being written, those before it, the line above and how this one begins, after the byte c."""
    w = s.words
    low = c + 32 if 65 <= c <= 90 else c
    if 97 <= low <= 122 or c >= 128:
        w[WORD] = hashed(w[WORD], low)
    elif w[WORD]:
        w[LAST_BUT_ONE] = w[LAST]
        w[LAST] = w[WORD]
        w[WORD] = 0
    if c == 10:
        w[LINE_ABOVE] = w[THIS_LINE]
        w[THIS_LINE] = at
        w[FIRST] = 0
        w[COLUMN] = 0
    else:
        w[COLUMN] = at - w[THIS_LINE]
        if w[COLUMN] <= 2 and at:
            w[FIRST] = c


@no_type_check
def find_match(s, at, key):
    """Go on with the match, or look where the last bytes were met before."""
    m, text = s.match, s.text
    if m[LENGTH] > 0 and text[m[FOLLOWS]] == text[at - 1]:
        m[FOLLOWS] += 1
        m[LENGTH] = min(m[LENGTH] + 1, MATCH_MOST)
    else:
        m[LENGTH] = 0
    place = key & (len(s.recent) - 1)
    if m[LENGTH] == 0 and s.recent[place] > 0:
        m[FOLLOWS] = s.recent[place]
        length = 0
        while length < MATCH_MOST and m[FOLLOWS] > length and text[m[FOLLOWS] - 1 - length] == text[at - 1 - length]:
            length += 1
        m[LENGTH] = length if length >= MATCH_LEAST else 0
    s.recent[place] = at
    m[EXPECTED] = text[m[FOLLOWS]] | 256 if m[LENGTH] > 0 else 0


@no_type_check
def begin_half(s, node):
    """Lines of the second half of a byte, whose first half is known."""
    for i in range(CONTEXTS):
        s.lines[i] = find(s.slots, hashed(s.hashes[i], node))


@no_type_check
def opinions(s, node, whole):
    """What every context and the match say of the next bit, as logits; how many contexts were met before."""
    slots, stretch, inputs, maps, trust = s.slots, s.stretch, s.inputs, s.maps, s.trust
    known = 0
    for i in range(CONTEXTS):
        slot = slots[s.lines[i] + node]
        history = slot & 255
        if history:
            known += 1
            inputs[PER * i] = stretch[(slot >> 20) + 2048] * trust[slot >> 8 & 255] >> 8
            inputs[PER * i + 1] = stretch[(maps[i << 8 | history] >> 20) + 2048]
        else:
            inputs[PER * i] = 0
            inputs[PER * i + 1] = 0
    inputs[ORDER_0] = stretch[s.order0[whole] >> 4]
    inputs[ALWAYS] = 256
    inputs[MATCHED] = 0
    inputs[SURE] = 0
    return known


@no_type_check
def match_opinion(s, whole, count):
    """The bit that the match expects, if it fits what is known of the byte: 0 or 1, or 2 if there is none."""
    m = s.match
    if m[EXPECTED] == 0 or (m[EXPECTED] >> (8 - count)) != whole:
        m[EXPECTED] = 0
        return 2
    bit = m[EXPECTED] >> (7 - count) & 1
    likely = s.stretch[s.agreed[m[LENGTH]] >> 4]
    sure = min(m[LENGTH], 32) * 16
    s.inputs[MATCHED] = likely if bit else -likely
    s.inputs[SURE] = sure if bit else -sure
    return bit


@no_type_check
def choose(s, whole, count, known, expected, c1, c2):
    """The weights that each mixer uses."""
    length = s.match[LENGTH] if expected < 2 else 0
    band = 0 if length == 0 else 1 + min(length, 15) // 4 if length < 16 else 5 + min(length - 16, 31) // 16
    s.chosen[0] = INPUTS * (BASES[0] + band * 256 + whole)
    s.chosen[1] = INPUTS * (BASES[1] + c1 * 8 + count)
    s.chosen[2] = INPUTS * (BASES[2] + c2 * 8 + count)
    s.chosen[3] = INPUTS * (BASES[3] + known * 8 + count)
    s.chosen[4] = INPUTS * (BASES[4] + (s.match[EXPECTED] & 255 if expected < 2 else 0) * 8 + count)


@no_type_check
def dot(weights, inputs):
    total = 0
    for k in range(len(inputs)):
        total += weights[k] * inputs[k]
    return total


@no_type_check
def train(weights, inputs, error):
    """Move weights along the inputs; the error is of a probability of 16 bits, times a rate."""
    for k in range(len(inputs)):
        weights[k] = min(max(weights[k] + ((inputs[k] * error + 0x80000) >> 20), -MOST_WEIGHT), MOST_WEIGHT)


@no_type_check
def mix(s, whole):
    """The logit that all mixers together give."""
    for k in range(SETS):
        at = s.chosen[k]
        said = dot(s.weights[at : at + INPUTS], s.inputs) >> 16
        said = min(max(said, -LOGIT_MOST), LOGIT_MOST)
        s.mixed[k] = said
        s.errors[k] = s.squash[said + MIXED_MOST]
    at = whole * SETS
    said = dot(s.top[at : at + SETS], s.mixed) >> 16
    return min(max(said, -MIXED_MOST), MIXED_MOST)


@no_type_check
def refine_at(table, base, logit):
    """The corrected probability between two steps of a row of a table."""
    place = logit + MIXED_MOST
    low, part = place // STEP, place % STEP
    return (table[base + low] * (STEP - part) + table[base + low + 1] * part) // STEP


@no_type_check
def correct(table, base, logit, target):
    """Move the nearer of the two steps to what happened."""
    at = base + (logit + MIXED_MOST + STEP // 2) // STEP
    table[at] += (target - table[at]) >> 6


@no_type_check
def learn(s, bit, whole, node, expected, rate):
    """What happened goes into every count, history, weight and match."""
    target = 65535 if bit else 0
    for k in range(SETS):
        at = s.chosen[k]
        train(s.weights[at : at + INPUTS], s.inputs, (target - s.errors[k]) * rate)
    slots, maps, rates, following = s.slots, s.maps, s.rates, s.following
    for i in range(CONTEXTS):
        at = s.lines[i] + node
        slot = slots[at]
        p, count, history = (slot >> 16) + 32768, slot >> 8 & 255, slot & 255
        p += (target - p) * rates[count] >> 16
        count += 1 if count < LIMIT else 0
        slots[at] = (p - 32768) << 16 | count << 8 | following[2 * history + bit]
        if history:
            entry = maps[i << 8 | history]
            p, count = (entry >> 10) + (1 << 21), entry & 1023
            p += ((target << 6) - p) * rates[count] >> 16
            maps[i << 8 | history] = (p - (1 << 21)) << 10 | (count + 1 if count < 254 else count)
    s.order0[whole] += (target - s.order0[whole]) >> 5
    if expected < 2:
        at = s.match[LENGTH]
        s.agreed[at] += ((65535 if bit == expected else 0) - s.agreed[at]) >> 7


@no_type_check
def predict_and_code(s, whole, count, c1, c2, coder, given, out, decoding, rate):
    """One bit: predict it, code it or read it, learn it."""
    node = whole if count < 4 else (1 << (count - 4)) | (whole & ((1 << (count - 4)) - 1))
    known = opinions(s, node, whole)
    expected = match_opinion(s, whole, count)
    choose(s, whole, count, known, expected, c1, c2)
    logit = mix(s, whole)
    p = s.squash[logit + MIXED_MOST]
    row1 = STEPS * (whole | c1 << 8)
    row2 = STEPS * (65536 + (hashed(c1 | c2 << 8, whole) & 0xFFFF))
    r1, r2 = refine_at(s.refined, row1, logit), refine_at(s.refined, row2, logit)
    final = (2 * p + r1 + r2 + 2) >> 2
    final = min(max(final, 1), 65535)
    if decoding:
        bit = read_bit(coder, out, final)
    else:
        bit = given >> (7 - count) & 1
        write_bit(coder, out, final, bit)
    target = 65535 if bit else 0
    at = whole * SETS
    train(s.top[at : at + SETS], s.mixed, (target - p) * TOP_RATE)
    correct(s.refined, row1, logit, target)
    correct(s.refined, row2, logit, target)
    learn(s, bit, whole, node, expected, rate)
    return bit


@no_type_check
def write_bit(coder, out, p, bit):
    """Narrow the range to the part of this bit; whole bytes that both ends share go out."""
    low, high = coder[LOW], coder[HIGH]
    middle = low + ((high - low) * p >> 16)
    if bit:
        high = middle
    else:
        low = middle + 1
    while (low ^ high) >> 24 == 0:
        if coder[PLACE] < len(out):  # what does not fit is counted
            out[coder[PLACE]] = high >> 24
        coder[PLACE] += 1
        low = low << 8 & MASK
        high = (high << 8 & MASK) | 255
    coder[LOW], coder[HIGH] = low, high


@no_type_check
def read_bit(coder, stream, p):
    """The bit in whose part the number in the stream lies."""
    low, high, number = coder[LOW], coder[HIGH], coder[NUMBER]
    middle = low + ((high - low) * p >> 16)
    bit = 1 if number <= middle else 0
    if bit:
        high = middle
    else:
        low = middle + 1
    while (low ^ high) >> 24 == 0:
        low = low << 8 & MASK
        high = (high << 8 & MASK) | 255
        number = (number << 8 & MASK) | (stream[coder[PLACE]] if coder[PLACE] < len(stream) else 0)
        coder[PLACE] += 1
    coder[LOW], coder[HIGH], coder[NUMBER] = low, high, number
    return bit


@no_type_check
def run(s, coder, out, start, stop, decoding):
    """Code or decode the bytes from start to stop of the text."""
    text = s.text
    for at in range(start, stop):
        begin_byte(s, at)
        c1 = text[at - 1] if at > 0 else 0
        c2 = text[at - 2] if at > 1 else 0
        given = 0 if decoding else text[at]
        rate = RATE + MORE_RATE * HALF_RATE // (HALF_RATE + at)
        whole = 1
        for count in range(8):
            if count == 4:
                begin_half(s, whole)
            whole = whole << 1 | predict_and_code(s, whole, count, c1, c2, coder, given, out, decoding, rate)
        text[at] = whole & 255
