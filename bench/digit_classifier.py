"""A small classifier of digits, trained here: whether completions keep the digit, and features for a Frechet distance."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from peers import cache
from torch import Tensor, nn
from torch.nn import functional as F

from anyorder.io import datasets

STEPS, BATCH = 2000, 64


class Classifier(nn.Module):
    """Two convolutions, 64 features, 10 scores, for images of 28 x 28 from 0 to 1."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2, padding=2), nn.ReLU()
        )
        self.features = nn.Linear(32 * 49, 64)
        self.scores = nn.Linear(64, 10)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.features(self.convs(images.view(-1, 1, 28, 28)).flatten(1))
        return features, self.scores(F.relu(features))

    @torch.no_grad()
    def digit(self, images: Tensor) -> Tensor:
        return self(images)[1].argmax(-1)

    @torch.no_grad()
    def seen(self, images: Tensor) -> NDArray[np.float64]:
        return self(images)[0].double().numpy()


def digit_classifier() -> Classifier:
    """Trained on MNIST in black and white, drawn anew at every step; kept in the cache."""
    model, path = Classifier(), cache() / "digit_classifier.pt"
    if path.exists():
        model.load_state_dict(torch.load(path, weights_only=True))
        return model.eval()
    data = datasets.mnist()
    x, labels = torch.from_numpy(data.train.copy()), torch.from_numpy(np.asarray(data.train_labels)).long()
    rng = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(STEPS):
        rows = torch.randint(len(x), (BATCH,), generator=rng)
        images = (torch.rand(BATCH, 28, 28, generator=rng) * 255 < x[rows]).float()
        loss = F.cross_entropy(model(images)[1], labels[rows])
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * min(1.0, 2 * (1 - step / STEPS))
        optimizer.step()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), path)
    return model.eval()


def frechet(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The squared Frechet distance between bell curves fitted to two sets of features."""
    from scipy.linalg import sqrtm

    means, spreads = [f.mean(0) for f in (one, other)], [np.cov(f.T) for f in (one, other)]
    root = np.real(sqrtm(spreads[0] @ spreads[1]))
    return float(np.sum((means[0] - means[1]) ** 2) + np.trace(spreads[0] + spreads[1] - 2 * root))
