"""Make the priming text that comes with the codec of text: the same bytes every time, at one commit.

    ANYORDER_DATA=... python recipes/text_priming.py everyday-1

It holds frequent words and phrases of English (counted in the training part of text8: frequencies, no text of anybody's), made-up
logs and JSON, and source code and documents of this project. All of it is under the project's own licence, Apache-2.0. What a
user's text is most likely to be like stands last. A priming text that was published is never made anew: archives need it.
"""

import argparse
import json
import lzma
import os
import random
from collections import Counter
from pathlib import Path

import zstandard

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "src" / "anyorder" / "modalities" / "text" / "codec" / "priming"
TRAIN = 66_000_000  # characters of text8, before those that anything is tested on
CODE = {
    "cli/archiving.py": 5000,
    "validation.py": 3200,
    "estimator.py": 6000,
    "io/atomic.py": 4500,
    "training/optimizer.py": 3500,
}
DOCUMENTS = {"docs/tables.md": 8000, "docs/images.md": 4000, "docs/format.md": 5000, "README.md": 7000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    args = parser.parse_args()
    rng = random.Random(0)
    parts = [*english(), logs(rng), objects(rng), code(), documents()]
    text = "\n".join(parts).encode()
    TARGET.mkdir(exist_ok=True)
    with open(TARGET / f"{args.name}.zst", "xb") as file:
        file.write(zstandard.ZstdCompressor(level=19).compress(text))
    print(f"{[len(part.encode()) for part in parts]} bytes, {len(text)} in all")


def english(words: int = 16_000, phrases: int = 20_000) -> list[str]:
    """The most frequent words of at least four letters, and phrases of three words, in so many characters."""
    with lzma.open(Path(os.environ["ANYORDER_DATA"]) / "text" / "text8_first74M.txt.xz", "rt") as file:
        found = file.read(TRAIN).split()
    single = [word for word, _ in Counter(found).most_common(6000) if len(word) > 3 and word not in DIGITS]
    triples = Counter(zip(found[:-2], found[1:-1], found[2:], strict=True)).most_common(20_000)
    clean = [" ".join(words) for words, _ in triples if not DIGITS & set(words) and min(map(len, words[::2])) > 1]
    return [cut(" ".join(single), words), cut(", ".join(clean), phrases)]


DIGITS = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}


def cut(text: str, most: int) -> str:
    return text[:most].rsplit(" ", 1)[0]


def logs(rng: random.Random, lines: int = 24) -> str:
    """Lines as servers, programs and systems write them."""
    out = []
    for k in range(lines):
        second, number = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}", rng.randrange(1000, 99999)
        address = ".".join(str(rng.randrange(256)) for _ in range(4))
        path = rng.choice(
            ["/", "/index.html", "/api/v1/users", "/login", "/static/css/main.css", "/images/logo.png", "/favicon.ico"]
        )
        level = rng.choice(["INFO", "WARNING", "ERROR", "DEBUG"])
        what = rng.choice(
            ["Connection refused", "request completed in", "Starting service", "Failed to open file", "user logged in"]
        )
        out += [
            f"2026-{1 + k % 12:02}-{1 + k:02} {second},{rng.randrange(1000):03} {level} [main] app.server: {what} {number} ms",
            f'{address} - - [{1 + k:02}/Jan/2026:{second} +0000] "GET {path} HTTP/1.1" {rng.choice([200, 304, 404])} {number} '
            '"-" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36"',
            f"Jan {1 + k:2} {second} host systemd[1]: Started Session {number} of user root.",
            f'2026-01-{1 + k:02}T{second}.{rng.randrange(1000):03}Z level={level.lower()} msg="{what}" id={number}',
        ]
    return "\n".join(out)


def objects(rng: random.Random) -> str:
    """JSON as packages, services and schemas write it."""
    package = {
        "name": "example",
        "version": "1.0.0",
        "description": "An example of a package",
        "main": "index.js",
        "scripts": {"build": "tsc", "test": "jest --coverage", "start": "node index.js"},
        "repository": {"type": "git", "url": "git+https://github.com/example/example.git"},
        "keywords": ["example", "test"],
        "author": "",
        "license": "MIT",
        "dependencies": {"express": "^4.18.2", "lodash": "^4.17.21"},
    }
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            key: {"type": kind, "description": f"The {key} of the item.", "default": None}
            for key, kind in [
                ("id", "string"),
                ("count", "integer"),
                ("enabled", "boolean"),
                ("items", "array"),
                ("value", "number"),
            ]
        },
        "required": ["id", "value"],
    }
    users = [
        {
            "id": k,
            "name": rng.choice(["Alice Smith", "Bob Jones", "Maria Garcia", "John Brown"]),
            "email": f"user{k}@example.com",
            "active": rng.random() < 0.5,
            "created_at": f"2026-0{1 + k}-1{k}T12:0{k}:00Z",
            "tags": ["new", "admin"][: k % 3],
            "location": {"lat": round(rng.uniform(-90, 90), 6), "lon": round(rng.uniform(-180, 180), 6), "city": "London"},
            "url": f"https://www.example.com/users/{k}",
            "parent": None,
        }
        for k in range(6)
    ]
    return "\n".join(
        [json.dumps(package, indent=2), json.dumps(schema, indent=4), json.dumps(users, indent=2), json.dumps(users[:3])]
    )


def code() -> str:
    return "\n".join((ROOT / "src" / "anyorder" / name).read_text()[:most] for name, most in CODE.items())


def documents() -> str:
    return "\n".join((ROOT / name).read_text()[:most] for name, most in DOCUMENTS.items())


if __name__ == "__main__":
    main()
