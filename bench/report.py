"""The pages of docs/benchmarks and the README's table, made from bench/results/*.json.

    python bench/report.py            # write them
    python bench/report.py --check    # say which differ, and end with 1

Every page answers one question. A table stands under the protocol it was measured by, with its command, commit and date, and with
what the numbers alone do not say. Nothing here is typed in: a number that is wrong is wrong in its file.
"""

import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from summary import OURS, Document, Record, cell, decimals, difference, markdown, summary, unique

ROOT = Path(__file__).parents[1]
RESULTS, PAGES_FOLDER = ROOT / "bench" / "results", ROOT / "docs" / "benchmarks"
START, END = "<!-- made by bench/report.py from bench/results: do not edit -->", "<!-- end -->"
PROTOCOLS = {
    "report": "report splits, never used before (seeds from 1000 on), one frozen version",
    "development": "development splits: settings were chosen on some of them, so differences of a few per cent mean little",
    "timing": "timings on a machine with other work: ratios inside one run mean something, seconds hardly",
}
SPREAD = "Mean ± standard deviation over seeds; differences are paired, ± their standard error over seeds."


class Section(NamedTuple):
    """A table of a page: which scores are shown, and whether the values of a key stand side by side."""

    file: str
    columns: tuple[str, ...] = ()
    across: str = ""


class Page(NamedTuple):
    title: str
    about: str
    sections: tuple[Section, ...]


FILLING = (
    Section("imputation", ("rmse, mean of draws", "rmse, best guess", "crps", "absolute error", "90 % interval covers")),
    Section("imputation_development", ("rmse", "crps"), across="method"),
    Section("imputation_nearest_development"),
    Section("coverage"),
    Section("coverage_development"),
    Section("one_column", ("rmse", "mae", "cpu_seconds")),
    Section("one_column_development", across="method"),
    Section("few_conditions", ("random error", "random se", "random floor", "informative error", "information")),
)
SCORING = ("density", "density_development", "sfarm_table1", "objectives", "mac_ablation_development", "mac_table7")
CHOOSING = (Section("acquisition"), Section("acquisition_development"), Section("acquisition_speed", across="method"))
PICTURES = ("mnist_nll", "digits_systems", "steps", "completion", "upscale", "modes")
PACKING = ("compression", "table_compression", "text_codec", "integer", "fuzz_archives")
TIMING = ("verbs", "speed", "sizes", "scale", "studio", "edges", "scoring")
TEXTS, CONTROL = ("text8", "restore"), ("shared_autonomy",)

PAGES = {
    "filling-gaps": Page(
        "Filling gaps",
        "How near do filled cells come to the truth, and how honest are draws and intervals?",
        FILLING,
    ),
    "densities": Page(
        "Densities and objectives",
        "How likely are rows that nobody trained on, and which training suits which question?",
        tuple(map(Section, SCORING)),
    ),
    "acquisition": Page(
        "Which measurement next",
        "How fast does the error of a target fall if a model chooses what is measured?",
        CHOOSING,
    ),
    "images": Page(
        "Nats of images",
        "How many nats does an image cost, in how few calls, and how good are completions?",
        tuple(map(Section, PICTURES)),
    ),
    "text": Page(
        "Text",
        "How many bits does a character cost in any order, and how many hidden ones are restored?",
        tuple(map(Section, TEXTS)),
    ),
    "control": Page(
        "Shared autonomy",
        "An operator moves some joints: does it help to tell the model which way?",
        tuple(map(Section, CONTROL)),
    ),
    "compression": Page(
        "Sizes of archives",
        "How small do images and tables become, and does everything come back?",
        tuple(map(Section, PACKING)),
    ),
    "speed": Page("Speed", "How long do fitting, asking and scoring take?", tuple(map(Section, TIMING))),
}


class Line(NamedTuple):
    """Of the README's table: our score next to that of the best other method of the same file."""

    what: str
    file: str
    where: dict[str, str]
    score: str
    others: tuple[str, ...] = ()  # only these, if not all


LATENT = ("MIWAE", "VAE", "VAE, EDDI's reward")
HALF = {"gaps": "mcar50"}
SMALL = ("energy", "yacht", "concrete")
LINES = [
    *(Line(f"half of {t.title()} filled, CRPS", "imputation", {"table": t, "gaps": "mcar50"}, "crps") for t in SMALL),
    Line("the last column of Concrete, RMSE", "one_column", {"table": "concrete"}, "rmse"),
    Line("new rows of Adult, nats", "density_development", {"table": "adult"}, "joint"),
    Line("error on the way, Concrete", "acquisition_development", {"table": "concrete"}, "error", LATENT),
    Line("half an MNIST digit completed, error", "completion", {"hidden": "50%"}, "error"),
    Line("Fashion-MNIST, bits a pixel¹", "compression", {"images": "fashion-mnist"}, "bits, one archive"),
    Line("Adult as an archive, bytes", "table_compression", {"table": "adult"}, "bytes"),
]
FOOT = "¹ with a model that comes with the package; its 434 kB are not counted and pay from some thousand images on."


def load(name: str) -> Document | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def page(about: Page) -> str:
    parts = [f"# {about.title}", START, about.about, "[How these numbers are made, and what their protocols are](index.md)."]
    for section in about.sections:
        if document := load(section.file):
            parts += rendered(document, section)
    return "\n\n".join([*parts, END]) + "\n"


def rendered(document: Document, section: Section) -> list[str]:
    protocol = PROTOCOLS.get(document["protocol"], document["protocol"])
    seeds = f" Seeds {spans(document['seeds'])}." if document["protocol"] in ("report", "development") else ""
    made = f"Commit {document['commit']}, {document['date']}; {document['machine']}."
    notes = [textwrap.fill(f"- {note}", 118, subsequent_indent="  ", break_on_hyphens=False) for note in document["notes"]]
    parts = [f"## {document['title']}", f"**Protocol**: {protocol}.{seeds}", *tables(document, section)]
    if any("±" in part for part in parts[2:]) and not any("±" in note for note in notes):
        parts.append(document.get("spread") or SPREAD)
    return [*parts, *(["\n".join(notes)] if notes else []), f"`{document['command']}`  \n{made}"]


def tables(document: Document, section: Section) -> list[str]:
    """One table, or one for every score with the values of a key side by side."""
    if not section.across:
        headings, rows = summary(document, section.columns or None)
        return [markdown(headings, rows, len(document["keys"]))]
    keys = [key for key in document["keys"] if key != section.across]
    heads = unique(record[section.across] for record in document["scores"])
    names = section.columns or unique(n for r in document["scores"] for n in r if n not in (*document["keys"], "seed"))
    parts = []
    for name in names:
        places = decimals(document["scores"], name)
        groups = unique(tuple(record[key] for key in keys) for record in document["scores"])
        rows = []
        for group in groups:
            found = [r for r in document["scores"] if tuple(r[key] for key in keys) == group]
            beside = {head: [r for r in found if r[section.across] == head] for head in heads}
            rows.append([*map(str, group), *(cell(beside[head], name, places) for head in heads)])
        parts += [f"### {name}" if len(names) > 1 else f"*{name}*", markdown([*keys, *heads], rows, len(keys))]
    return parts


def spans(seeds: Sequence[int]) -> str:
    """1000, 1001, 1002, 1005 as 1000-1002, 1005."""
    out: list[list[int]] = []
    for seed in sorted(seeds):
        if out and seed == out[-1][1] + 1:
            out[-1][1] = seed
        else:
            out.append([seed, seed])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in out)


def readme_table() -> str:
    heads = ["what (less is better)", OURS, "the best other one", "splits"]
    rows = [row for line in LINES if (row := readme_row(line))]
    return "\n\n".join([START, markdown(heads, rows), FOOT, END])


def readme_row(line: Line) -> list[str] | None:
    document = load(line.file)
    if document is None:
        return None
    who = "coder" if "coder" in document["keys"] else "method"
    records = [r for r in document["scores"] if line.where.items() <= r.items() and line.score in r]
    groups = {name: [r for r in records if r[who] == name] for name in unique(r[who] for r in records)}
    others = {name: found for name, found in groups.items() if name != OURS and (not line.others or name in line.others)}
    if OURS not in groups or not others:
        return None
    best = min(others, key=lambda name: middle(others[name], line.score))
    places = decimals(records, line.score)
    apart = difference(others[best], groups[OURS], line.score, places)
    told = f"{best} {cell(others[best], line.score, places)}" + (f" ({apart})" if "±" in apart else "")
    count = len({r.get("seed") for r in groups[OURS]})
    protocol = f"report, {count}" if document["protocol"] == "report" else str(document["protocol"])
    return [line.what, cell(groups[OURS], line.score, places), told, protocol]


def middle(records: Sequence[Record], score: str) -> float:
    values = [record[score] for record in records]
    return mean(value[0] if isinstance(value, list) else value for value in values)


def made() -> dict[Path, str]:
    """Every file that is made here, and what belongs into it."""
    found = {PAGES_FOLDER / f"{name}.md": page(about) for name, about in PAGES.items()}
    readme = (ROOT / "README.md").read_text()
    before, _, rest = readme.partition(START)
    found[ROOT / "README.md"] = before + readme_table() + rest.partition(END)[2] if rest else readme
    protocol = (
        (ROOT / "bench" / "README.md").read_text().partition(START)[2].partition(END)[0].strip().replace("(../docs/", "(../")
    )
    contents = "\n".join(f"- [{about.title}]({name}.md): {about.about}" for name, about in PAGES.items())
    found[PAGES_FOLDER / "index.md"] = "\n\n".join(["# Benchmarks", START, contents, protocol, END]) + "\n"
    return found


def main() -> None:
    stale = {path: text for path, text in made().items() if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        print(f"{path.relative_to(ROOT)} {'differs from what the results say' if '--check' in sys.argv else 'written'}")
        if "--check" not in sys.argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if "--check" in sys.argv and stale:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
