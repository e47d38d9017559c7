"""FrankaKitchen with a scripted operator: three subtasks in any order, by an arm that follows way points.

    python -m examples.control.kitchen 60 kitchen.npz --seed 0        # demonstrations, from a seed

Needs `pip install 'anyorder[control]'` (gymnasium-robotics and the mujoco that it works with). The gripper stays closed: the
subtasks are pushes. At every step the controller moves the hand towards the next way point, keeps its orientation, and lets the
joints drift to a posture of rest where the hand does not care: damped least squares with the null space.
"""

import argparse
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

SUBTASKS = ("kettle", "light switch", "slide cabinet")
JOINTS = 7
REST = np.array([0.15, -1.77, 1.84, -2.48, 0.26, 0.71, 1.6])  # radians
UPRIGHT = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # the orientation that the hand keeps
STEP = 0.08  # seconds
FASTEST_JOINT = 2.0  # radians a second, an action of 1
NEAR, NEAR_FIRST = 0.03, 0.05  # metres from a way point that count as there
PATIENCE = 45  # steps for one way point
WAY_HOME = 35  # steps between subtasks
LONGEST = 280  # steps of an episode
WANDER = 0.04  # how unsteady a demonstrator's hand is, in metres a second


class WayPoint(NamedTuple):
    place: Vector
    fast: bool = False


def kitchen() -> Any:
    """The environment."""
    warnings.filterwarnings("ignore")
    import gymnasium
    import gymnasium_robotics

    gymnasium.logger.min_level = 50
    gymnasium.register_envs(gymnasium_robotics)
    return gymnasium.make("FrankaKitchen-v1", tasks_to_complete=list(SUBTASKS)).unwrapped


class Operator:
    """Does the subtasks in an order of its own; `act` is the action it would take now."""

    def __init__(self, env: Any, order: list[str], rng: np.random.Generator, pace: float = 1.0, wander: float = 0.0) -> None:
        self.model, self.data = env.robot_env.model, env.robot_env.data
        self.order, self.rng, self.pace, self.wander = order, rng, pace, wander
        self.done = 0  # subtasks
        self.way: list[WayPoint] = []
        self.waited, self.going_home = 0, 0
        self.drift, self.pull, self.pull_home = np.zeros(3), np.zeros(3), np.zeros(JOINTS)

    def completed(self, subtask: str) -> None:
        """The environment says that a subtask is done."""
        if self.done < len(self.order) and subtask == self.order[self.done]:
            self._next()

    def act(self) -> Vector:
        if self.going_home:
            return self._homewards()
        target = self._target()
        if target is None:  # a way has just ended
            return self._homewards()
        error = target.place - self._hand()
        self.pull = np.clip(self.pull + 0.25 * error, -0.12, 0.12)
        velocity = (0.5 * error + (1.0 if target.fast else 0.5) * self.pull) / STEP
        most = self.pace * (1.8 if target.fast else 0.55)
        velocity *= min(1.0, most / max(float(np.linalg.norm(velocity)), 1e-9))
        self.drift = 0.85 * self.drift + self.wander * self.rng.standard_normal(3)
        return self._action(self._joint_velocity(velocity + self.drift))

    def _target(self) -> WayPoint | None:
        """Where the hand should be now; None if it should go home first."""
        if self.done == len(self.order):
            return WayPoint(self._hand())
        if not self.way:
            self.way, self.waited = self._plan(self.order[self.done]), 0
        self.waited += 1
        near = NEAR_FIRST if len(self.way) == 4 else NEAR
        if np.linalg.norm(self.way[0].place - self._hand()) < near or self.waited > PATIENCE:
            self.way, self.waited = self.way[1:], 0
            self.pull *= 0.7
            if len(self.way) < 2:
                self._next()
                return None
        return self.way[0]

    def _plan(self, subtask: str) -> list[WayPoint]:
        """Before the thing, at it, through it, and away."""
        if subtask == "kettle":
            at = np.array([self._site("kettle_site")[0], self._site("kettle_site")[1] - 0.2, 1.80])
            before, through, away = (np.array(p) for p in ([at[0], 0.13, 1.95], [-0.245, 0.70, 1.80], [-0.25, 0.35, 1.95]))
            return self._unsteady([before, at, through, away], fast=2)
        site = self._site("light_site" if subtask == "light switch" else "slide_site")
        offsets = {
            "light switch": ([0.10, -0.20, 0.0], [0.085, -0.01, 0.01], [-0.16, 0.02, 0.01], [-0.08, -0.25, 0.0]),
            "slide cabinet": ([-0.12, -0.22, -0.02], [-0.08, 0.0, 0.0], [0.42, 0.0, 0.0], [0.2, -0.22, -0.05]),
        }
        return self._unsteady([site + np.array(offset) for offset in offsets[subtask]])

    def _unsteady(self, places: list[Vector], fast: int = -1) -> list[WayPoint]:
        """No two demonstrations go the same way."""
        jitter = (0.01, 0.005, 0.006, 0.01)
        return [WayPoint(p + self.rng.normal(0, jitter[k], 3), k == fast) for k, p in enumerate(places)]

    def _next(self) -> None:
        self.done, self.way, self.waited, self.going_home = self.done + 1, [], 0, WAY_HOME
        self.pull, self.pull_home = np.zeros(3), np.zeros(JOINTS)

    def _homewards(self) -> Vector:
        """Towards the posture of rest, joint by joint."""
        self.going_home = max(0, self.going_home - 1)
        error = REST - self.data.qpos[:JOINTS]
        if np.abs(error).max() < NEAR * 4:
            self.going_home = 0
        self.pull_home = np.clip(self.pull_home + 0.1 * error, -0.2, 0.2)
        return self._action(1.2 * np.clip(3 * error + self.pull_home, -0.9, 0.9))

    def _joint_velocity(self, velocity: Vector) -> Vector:
        import mujoco

        hand = self._site_number("end_effector")
        along, around = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        mujoco.mj_jacSite(self.model, self.data, along, around, hand)
        axes = self.data.site_xmat[hand].reshape(3, 3)
        turn = 0.2 * np.cross(axes.T, UPRIGHT.T).sum(0) / STEP
        care = 0.15  # for orientation, in metres a radian
        jacobian = np.vstack([along[:, :JOINTS], care * around[:, :JOINTS]])
        wanted = np.concatenate([velocity, care * turn])
        damped = jacobian @ jacobian.T + 1e-3 * np.eye(6)
        free = np.eye(JOINTS) - jacobian.T @ np.linalg.solve(damped, jacobian)
        return jacobian.T @ np.linalg.solve(damped, wanted) + free @ (0.5 * (REST - self.data.qpos[:JOINTS]))

    def _action(self, joint_velocity: Vector) -> Vector:
        closed = [-1.0, -1.0]
        return np.clip(np.concatenate([joint_velocity / FASTEST_JOINT, closed]), -1, 1)

    def _hand(self) -> Vector:
        return self._site("end_effector")

    def _site(self, name: str) -> Vector:
        return np.array(self.data.site_xpos[self._site_number(name)])

    def _site_number(self, name: str) -> int:
        import mujoco

        return int(mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_SITE, name))


class Episode(NamedTuple):
    states: NDArray[np.float32]
    actions: NDArray[np.float32]
    done: list[str]  # subtasks


def play(env: Any, seed: int, act: Any = None, noise: float = 0.0, pace: float | None = None) -> Episode:
    """One episode. `act(state, wanted, step)` says what is done when the operator wants `wanted`; without it, just that."""
    rng = np.random.default_rng(seed)
    order = [SUBTASKS[k] for k in rng.permutation(len(SUBTASKS))]
    seen, _ = env.reset(seed=seed)
    operator = Operator(env, order, rng, rng.uniform(0.8, 1.2) if pace is None else pace, WANDER)
    states, actions, done = [], [], []
    for step in range(LONGEST):
        state, wanted = seen["observation"].astype(np.float32), operator.act().astype(np.float32)
        states.append(state)
        actions.append(wanted if act is None else act(state, wanted, step))
        shaken = actions[-1].copy()
        shaken[:JOINTS] += noise * rng.standard_normal(JOINTS)
        seen, _, ended, _, about = env.step(np.clip(shaken, -1, 1))
        for subtask in about["step_task_completions"]:
            done.append(subtask)
            operator.completed(subtask)
        if ended:
            break
    return Episode(np.array(states), np.array(actions), done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("episodes", type=int)
    parser.add_argument("output")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    env, kept = kitchen(), list[Episode]()
    for number in range(args.episodes):
        played = play(env, args.seed + number, noise=0.02)
        print(
            f"{number + 1} of {args.episodes}: {', '.join(played.done) or 'nothing'} done in {len(played.states)} steps",
            flush=True,
        )
        kept += [played] if len(played.done) >= 2 else []
    episodes = np.repeat(np.arange(len(kept)), [len(played.states) for played in kept]).astype(np.int32)
    np.savez_compressed(
        args.output,
        obs=np.concatenate([played.states for played in kept]),
        act=np.concatenate([played.actions for played in kept]),
        episode=episodes,
    )


if __name__ == "__main__":
    main()
