"""Half an image given the other half: handwritten digits (inside scikit-learn), learned in about a minute; pictures go to out/.

The same from the terminal: anyorder fit FOLDER -o digits.ao; anyorder inpaint digits.ao photo.png --half right
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from anyorder.estimator import AnyOrder
from anyorder.modalities.images.pixels import image_grid, write_image
from anyorder.training import progress_bar

digits = load_digits()
train, test = digits.images[:1500], digits.images[1500:1506]
with progress_bar() as progress:
    model = AnyOrder(effort=0.15, callback=progress).fit(train, digits.target[:1500])

missing = np.zeros((8, 8), dtype=bool)
missing[:, 4:] = True
filled = model.inpaint(test, missing, draws=4, steps=16)  # (draw, image, height, width)
kept = np.where(missing, 8, test)
lines = [np.stack([test[k], kept[k], *filled[:, k]]) for k in range(len(test))]
new = np.concatenate([model.sample(4, steps=32, label=label) for label in range(10)]).astype(np.float64)

out = Path("out")
out.mkdir(exist_ok=True)
for name, images, columns in (("inpainted.png", np.concatenate(lines), 6), ("new.png", new, 8)):
    write_image(out / name, image_grid((images * 255 / 16).round().astype(np.uint8), columns), enlarge=8)
    print(f"out/{name}")
bits = -model.score_samples(test).mean() / 64 / np.log(2)
print(f"{bits:.2f} bits per pixel; the right half given the left: {-model.score_samples(test, missing).mean():.1f} nats")
