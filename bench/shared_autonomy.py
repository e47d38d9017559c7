"""Shared autonomy in FrankaKitchen: a scripted operator moves some joints, a model moves the others (MAC's section 4.4, Table 6).

    PYTHONPATH=. python bench/shared_autonomy.py --seeds 1000-1002      # needs pip install 'anyorder[control]'

Demonstrations are made by our own controller from a seed, once (`--demonstrations` episodes of three subtasks in random order,
kept if two or more were done). Every seed trains every policy anew and plays the same episodes, none of which was demonstrated.
Counted are the subtasks that are done, of three. The operator sees the arm as it is and wants an action at every step; of that
only the operator's joints are used. `information` is E[log p(others | state, operator's) - log p(others | state)] in nats on
demonstrations that were held out: what knowing the operator's joints tells about the others.

The paper has other demonstrations (D4RL's, which are not to be had), does not say which four dimensions are the operator's, and
has energy-based policies: its numbers (BC fill 1.81, conditional fill 2.00, its full policy 2.15, of 4) are not comparable.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from examples.control.kitchen import JOINTS, Episode, kitchen, play
from examples.control.policy import Numbers, Policy
from peers import cache
from results import Results, flags

CHANGES = 40  # steps after which other joints are the operator's
SETS: dict[str, tuple[int, ...] | None] = {
    "joints 0 to 3": (0, 1, 2, 3),  # four, as in the paper
    "joint 1": (1,),
    "joint 3": (3,),
    "joint 5": (5,),
    "changing": None,  # a random set of one to six, another one every CHANGES steps
}
FOUR = (0, 1, 2, 3)
FIRST_EPISODE = 10**6  # seeds of episodes that are played; those of demonstrations begin at 0
Act = Callable[[Numbers, Numbers, Sequence[int]], Numbers]  # state, what the operator wants, which of it counts


@dataclass(frozen=True)
class Demonstrations:
    states: Numbers
    actions: Numbers
    episodes: Any

    def part(self, held_out: bool) -> "Demonstrations":
        chosen = (self.episodes % 10 == 9) == held_out
        return Demonstrations(self.states[chosen], self.actions[chosen], self.episodes[chosen])


def main() -> None:
    parser = flags(__doc__, SETS, seeds=(0,))
    parser.add_argument("--demonstrations", type=int, default=150)
    parser.add_argument("--episodes", type=int, default=25)
    parser.add_argument("--steps", type=int, default=4000, help="of training, for every policy")
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = Results.open("shared_autonomy", args, "Subtasks done, of three", keys=("operator", "method"))
    env, shown = kitchen(), demonstrations(args.demonstrations)
    for seed in args.seeds:
        fitted = policies(shown.part(held_out=False), args.steps, seed)
        for name in args.tables:
            for method, act in methods(fitted, name, shown).items():
                if results.has(operator=name, method=method, seed=seed):
                    continue
                done = [played(env, act, SETS[name], FIRST_EPISODE + number) for number in range(args.episodes)]
                score = {"subtasks": float(np.mean(done)), "over episodes": float(np.std(done) / np.sqrt(len(done)))}
                if method == "any-order, mixed" and SETS[name] is not None:
                    score["information"] = information(fitted["mixed"], shown.part(held_out=True), SETS[name] or ())
                results.add(score, operator=name, method=method, seed=seed)
    results.print()


def demonstrations(episodes: int) -> Demonstrations:
    """Made once, and kept beside what peers have made."""
    path = cache() / f"kitchen_{episodes}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        kept, number, env = list[Episode](), 0, kitchen()
        while len(kept) < episodes:
            one = play(env, number, noise=0.02)
            number += 1
            kept += [one] if len(one.done) >= 2 else []
        which = np.repeat(np.arange(len(kept)), [len(one.states) for one in kept])
        np.savez_compressed(
            path,
            obs=np.concatenate([one.states for one in kept]),
            act=np.concatenate([one.actions for one in kept]),
            episode=which,
        )
    found = np.load(path)
    return Demonstrations(found["obs"], found["act"], found["episode"])


def policies(shown: Demonstrations, steps: int, seed: int) -> dict[str, Policy]:
    """One model of each kind; they differ in what they practise, and in nothing else."""

    def fit(**how: Any) -> Policy:
        return Policy.fit(shown.states, shown.actions, shown.episodes, steps=steps, seed=seed, **how)

    return {
        "cloned": fit(share=1.0, at_once=True),
        "cloned for four": fit(operator=FOUR, share=1.0, at_once=True),
        "for four": fit(operator=FOUR, share=1.0),
        "all masks": fit(share=1.0),
        "mixed": fit(operator=FOUR, share=0.5),
    }


def methods(fitted: dict[str, Policy], name: str, shown: Demonstrations) -> dict[str, Act]:
    """Who moves the joints that are not the operator's."""

    def given(policy: Policy) -> Act:
        return lambda state, wanted, mine: policy.fill(state, {joint: float(wanted[joint]) for joint in mine})

    def blind(policy: Policy) -> Act:
        return lambda state, wanted, mine: replaced(policy.fill(state, {}), wanted, mine)

    rng = np.random.default_rng(zlib.crc32(name.encode()))
    found = {
        "operator alone": lambda state, wanted, mine: wanted,
        "behaviour cloning alone": lambda state, wanted, mine: fitted["cloned"].fill(state, {}),
        "operator + independent cloning": blind(fitted["cloned"]),
        "operator + cloning given joints 0 to 3": given(fitted["cloned for four"]),
        "any-order, joints 0 to 3 only": given(fitted["for four"]),
        "any-order, all masks": given(fitted["all masks"]),
        "any-order, mixed": given(fitted["mixed"]),
        "any-order, mixed, told nothing": blind(fitted["mixed"]),
        "operator + a random row": lambda state, wanted, mine: replaced(
            shown.actions[rng.integers(len(shown.actions))].copy(), wanted, mine
        ),
    }
    if SETS[name] != FOUR:
        del found["operator + cloning given joints 0 to 3"]  # it can be told these four, and nothing else
    return found


def replaced(action: Numbers, wanted: Numbers, mine: Sequence[int]) -> Numbers:
    action[list(mine)] = wanted[list(mine)]
    return action


def played(env: Any, act: Act, mine: tuple[int, ...] | None, episode: int) -> int:
    """How many subtasks are done."""

    def step(state: Numbers, wanted: Numbers, number: int) -> Numbers:
        return act(state, wanted, changing(episode, number) if mine is None else mine)

    return len(play(env, episode, step).done)


def changing(episode: int, step: int) -> tuple[int, ...]:
    rng = np.random.default_rng([episode, step // CHANGES])
    return tuple(rng.permutation(JOINTS)[: rng.integers(1, JOINTS)].tolist())


def information(policy: Policy, shown: Demonstrations, mine: Sequence[int]) -> float:
    """What the operator's joints tell about the others."""
    others = [joint for joint in range(JOINTS) if joint not in mine]
    told, alone = (policy.log_p(shown.states, shown.actions, known, target=others) for known in (mine, ()))
    return float((told - alone).mean())


if __name__ == "__main__":
    main()
