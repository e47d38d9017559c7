"""Batched `log_prob` against its twin that walks one step at a time, in the same run: seconds, ratio, memory.

    python bench/scoring.py --data 9 30 64 --rows 1 64 1024 --orders 4 --threads 2

The twin calls the network once per step and order with all rows; the batched form puts many steps of many rows into
one call. Memory is the growth of the process's peak while scoring, each form in a process of its own.
"""

import multiprocessing
from functools import partial
from pathlib import Path

import torch
from results import Results, flags
from timing import take_turns

from anyorder.inference import fixed_orders, path_terms, seeded, walk
from anyorder.models.any_order import AnyOrderModel, build_model
from anyorder.schema import Real, Schema, Values
from anyorder.subsets import Question

NAMES = ("one step at a time", "batched")


def task(variables: int, rows: int) -> tuple[AnyOrderModel, Values, Question]:
    model = build_model(Schema.repeat(Real(), variables)).eval()
    x = torch.randn(rows, variables, generator=seeded())
    return model, x, Question.joint(torch.ones(rows, variables, dtype=torch.bool))


@torch.inference_mode()
def one_step_at_a_time(variables: int, rows: int, orders: int) -> object:
    model, x, question = task(variables, rows)
    out = []
    for order in fixed_orders(variables, orders):
        terms = torch.zeros_like(x)
        for step in walk(model, x, question, order=order):
            terms += step.conditionals.log_prob(x, at=step.now)
        out.append(terms)
    return torch.stack(out)


def batched(variables: int, rows: int, orders: int) -> object:
    model, x, question = task(variables, rows)
    return path_terms(model, x, question, fixed_orders(variables, orders))


def peak_growth(action: partial[object]) -> float:
    """By how many MB the peak memory of a fresh process grows while it scores."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (action,))


def measure(action: partial[object]) -> float:
    torch.set_num_threads(1)
    task(4, 1)
    before = peak_memory()
    action()
    return (peak_memory() - before) / 1024


def peak_memory() -> int:
    """The peak resident memory of this process in kB, from Linux's own count."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


def main() -> None:
    parser = flags(__doc__, ["9", "30", "64"])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 64, 1024])
    parser.add_argument("--orders", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    results = Results.open("scoring", args, "Scoring many steps in one call", ("variables", "rows"), protocol="timing")
    for variables in args.tables:
        for rows in args.rows:
            slow, fast = (partial(f, int(variables), rows, args.orders) for f in (one_step_at_a_time, batched))
            torch.testing.assert_close(slow(), fast(), atol=2e-4, rtol=1e-4)
            seconds = take_turns(slow, fast, rounds=max(1, round(5 * args.effort)))
            found = {f"{name}, ms": 1e3 * s for name, s in zip(NAMES, seconds, strict=True)}
            found["times as fast"] = seconds[0] / seconds[1]
            if rows == max(args.rows):
                found |= {f"{name}, MB": peak_growth(action) for name, action in zip(NAMES, (slow, fast), strict=True)}
            results.add(found, variables=variables, rows=str(rows), seed=args.seeds[0])
    results.print()


if __name__ == "__main__":
    main()
