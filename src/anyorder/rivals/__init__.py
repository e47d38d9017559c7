"""The seeds' other systems, behind the same verbs: what an any-order model is compared with."""

from .answers import each_log_prob, log_prob, mean, sample
from .convolutional import build_convolutional
from .ddpm import DDPM
from .fit import RivalRecipe, fit_rival
from .fixed_gaussian import FixedGaussian
from .latent import LatentModel
from .miwae import MIWAE
from .vae import VAE

__all__ = [
    "DDPM",
    "MIWAE",
    "VAE",
    "FixedGaussian",
    "LatentModel",
    "RivalRecipe",
    "build_convolutional",
    "each_log_prob",
    "fit_rival",
    "log_prob",
    "mean",
    "sample",
]
