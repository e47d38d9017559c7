"""The picture of the README: one model of 442 diabetes patients asked three questions, and digits completed.

python examples/07_first_picture.py [FILE]        # needs matplotlib: pip install 'anyorder[plot]'
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_diabetes

from anyorder import AnyOrder

matplotlib.use("Agg")
from matplotlib import pyplot as plt

RED, GREY, DARK = "#d1495b", "#c9c9c9", "#333333"
patients = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "progression", "s5": "log triglycerides"})
model = AnyOrder(effort=0.5).fit(patients)

plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "text.color": DARK})
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.0), width_ratios=(1.15, 1, 1), constrained_layout=True)

# Any column given any others: the same model, more and more known.
edges = np.arange(0, 351, 25)
known = [{}, {"bmi": 31.5}, {"bmi": 31.5, "bp": 105, "log triglycerides": 5.3}]
for given, colour, width in zip(known, (GREY, "#edae49", RED), (1.5, 1.5, 2.4), strict=True):
    answer = model.conditional(given, "progression")
    below = np.array([answer.cdf(float(edge)) for edge in edges])
    label = "nothing known" if not given else ", ".join(f"{name} {value:g}" for name, value in given.items())
    left.stairs(np.diff(below), edges, color=colour, lw=width, label=label.replace("log triglycerides", "log trig."))
left.set_title("progression of the disease, given ...", loc="left", fontsize=9)
left.legend(frameon=False, fontsize=7, loc="upper right")
left.set_ylim(top=left.get_ylim()[1] * 1.25)
left.set_yticks([])
left.spines["left"].set_visible(False)

# What to measure next, when only the age is known.
ranking = model.next_best({"age": 63.0}, "progression").sort_values("gain").tail(6)
middle.barh(ranking["measurement"], ranking["gain"], xerr=ranking["standard_error"], color=RED, ecolor=DARK, height=0.6)
middle.set_title("what to measure next: expected nats", loc="left", fontsize=9)
middle.tick_params(left=False)

# The same verbs on images: the lower half is drawn, given the upper one.
digits = AnyOrder.load("mnist")
images = digits.sample(5, steps=100)
missing = np.zeros((28, 28), dtype=bool)
missing[14:] = True
filled = digits.inpaint(images, missing, draws=2, steps=50)
shown = [np.where(missing, 0.35, images), *(np.where(missing, 0.75 * part + 0.1, part) for part in filled)]
right.imshow(np.concatenate([np.concatenate(list(row), axis=1) for row in shown]), cmap="gray_r", vmin=0, vmax=1)
right.set_title("lower halves hidden, and drawn twice", loc="left", fontsize=9)
right.set_axis_off()

path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "first_picture.png")
figure.savefig(path, dpi=110)
print(path)
