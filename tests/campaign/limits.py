"""Memory and time: a decoder that is shown a small file may take a little of both, whatever the file claims."""

import os
import resource
from functools import cache
from pathlib import Path

from campaign import forgeries
from campaign.broken_disk import WELL, in_child

MORE_MEMORY = 3 * 2**28  # bytes beyond what the process has: blocks hold 256 MB
SECONDS = 60


def narrow():
    """No more memory than this from now on; `in_child` sets the clock."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + MORE_MEMORY, now + MORE_MEMORY))


@cache
def claims():
    return dict(enumerate(forgeries.claims()))


def check_claim(random):
    """One small file with giant claims, or one that was bent, in a process with little memory and a clock."""
    if random.random() < 0.5:
        name, raw = claims()[random.randrange(len(claims()))]
    else:
        name, raw = forgeries.forged_archive(random)
    check_raw(name, raw)
    return True


def check_raw(name, raw):
    ended = in_child(lambda: forgeries.unpacked(raw), narrow, SECONDS)
    assert ended == WELL, f"{name}: {len(raw)} bytes end the process with {ended}"
