"""Results as files: what was run, where, when and on which commit, beside the scores."""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from anyorder import __version__


def write_results(path: Path, name: str, settings: dict[str, Any], scores: Any, folder: Path | None = None) -> None:
    """One JSON file, written anew every time there is more to tell. Of a folder on the command line, its commit is told."""
    words = [word.replace(str(folder), commit(folder)) if folder else word for word in sys.argv[1:]]
    document = {
        "name": name,
        "command": " ".join(["python", f"bench/{Path(sys.argv[0]).name}", *words]),
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}",
        "version": __version__,
        "settings": {key: str(value) if isinstance(value, Path) else value for key, value in settings.items()},
        "scores": scores,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def commit(folder: Path = Path(__file__).parent) -> str:
    """The commit that is checked out, with a mark if files were changed since."""
    git = ["git", "-C", str(folder)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=False).stdout.strip()
    return f"{head} and changes" if changed else head or "unknown"
