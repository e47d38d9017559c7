"""Handwritten digits completed and drawn by a model that comes with the package, within seconds; pictures go to out/.

The same from the terminal: anyorder inpaint mnist photo.png --half bottom; anyorder sample mnist -n 36 --steps 20 --grid new.png
"""

from pathlib import Path

import numpy as np

from anyorder.estimator import AnyOrder
from anyorder.modalities.images.pixels import image_grid, write_image

model = AnyOrder.load("mnist")
images = model.sample(8, steps=100)  # stand in for photographs: any black and white images of 28 x 28 pixels will do
missing = np.zeros((28, 28), dtype=bool)
missing[14:] = True
filled = model.inpaint(images, missing, draws=4, steps=20)  # (draw, image, height, width)
assert (filled[:, :, :14] == images[:, :14]).all()  # what is known stays

kept = np.where(missing, 128, images * 255)
rows = np.concatenate([images * 255, kept, *(filled * 255)])
new = model.sample(36, steps=20) * 255

out = Path("out")
out.mkdir(exist_ok=True)
for name, pictures, columns in (("inpainted.png", rows, 8), ("new.png", new, 9)):
    write_image(out / name, image_grid(pictures.astype(np.uint8), columns), enlarge=3)
    print(f"out/{name}")
nats = -model.score_samples(images[:2], missing)
print(f"the lower half given the upper: {nats.mean():.1f} nats, {nats.mean() / missing.sum() / np.log(2):.2f} bits a pixel")
