"""What the commands do with a model of text: restore, proofread, draw, as plain documents."""

import sys
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..estimator import AnyOrder
from ..io.atomic import check_place, write_whole
from ..modalities.displays import percent, text_grid
from ..modalities.text.corpus import read_corpus
from ..modalities.text.text_answers import ODD_HEADINGS, TextAnomalies
from .printing import Printer, print_json, say_so

Document = dict[str, Any]


def text_in(argument: str) -> str:
    """What was typed, or what the named file holds, or what comes from a pipe."""
    if argument == "-":
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    path = Path(argument) if len(argument) < 1000 and "\n" not in argument and "\0" not in argument else None
    if path is not None and (path.suffix.lower() == ".txt" or path.is_file()):
        return "".join(read_corpus(path).texts())
    return argument


def restore(model: AnyOrder, text: str, draws: int, gap: str) -> Document:
    """The likeliest filling, alternatives for every gap, and draws."""
    found = model.restore(text, draws, gap=gap)
    gaps = [
        {
            "start": one.start + 1,
            "length": one.length,
            "alternatives": [{"text": other.text, "probability": other.probability} for other in one.alternatives],
        }
        for one in found.gaps
    ]
    return {"text": found.text, "probability": found.probability, "gaps": gaps, "draws": list(found.draws)}


def show_restored(document: Document) -> None:
    say_so(document["text"])
    for number, draw in enumerate(document["draws"], 1):
        say_so(f"draw {number}: {draw}")
    rows = [
        [
            str(gap["start"]),
            ", ".join(f"{one['text']!r} {percent(one['probability']).strip()}" for one in gap["alternatives"]),
        ]
        for gap in document["gaps"]
    ]
    out = Printer()
    for line in text_grid(["at", "alternatives"], rows, out.width):
        out.line(line)


def proofread(model: AnyOrder, text: str, top: int) -> Document:
    """The characters that fit worst, counted from 1, the oddest first."""
    found: TextAnomalies = model.anomalies([text])
    odd = [
        {
            "place": one.place + 1,
            "line": text.count("\n", 0, one.place) + 1,
            "found": one.found,
            "nats": one.nats,
            "expected": one.expected,
            "probability": one.probability,
        }
        for one in found.lines(top)
    ]
    return {"characters": len(text), "odd": odd, "rows": found.rows(top)}


def show_proofread(document: Document) -> None:
    out = Printer()
    for line in text_grid(ODD_HEADINGS[1:], [row[1:] for row in document["rows"]], out.width):
        out.line(line)


def sample(model: AnyOrder, n: int, given: list[str] | None, output: Path | None, json: bool, **how: Any) -> None:
    """New texts, or one text with its gaps drawn, a line each; into a .txt file or to standard output."""
    if given is not None and len(given) > 1:
        raise InputError(f"Got --given {len(given)} times; of text it is one text with gaps.")
    if output is not None:
        if output.suffix.lower() != ".txt":
            raise InputError(f"Texts are written to a .txt file, not to {output.name}.")
        check_place(output)
    drawn = model.sample(n, given[0] if given else None, **how)
    if json:
        print_json({"texts": drawn})
    elif output is not None:
        content = ("\n".join(drawn) + "\n").encode("utf-8", "surrogateescape")
        write_whole(output, lambda beside: put(content, beside))
    else:
        for one in drawn:
            say_so(one)


def put(content: bytes, place: str) -> None:
    Path(place).write_bytes(content)
