"""Files upon files answered by several processes or machines: one output file per input, the same to the bit on all of them."""

from .engines import ENGINES, Engine, Here, Processes, engine_named
from .runner import Shard, Summary, run
from .worker import Answered, Failed, Worker

__all__ = ["ENGINES", "Answered", "Engine", "Failed", "Here", "Processes", "Shard", "Summary", "Worker", "engine_named", "run"]
