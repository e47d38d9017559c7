"""The papers' other systems, behind the same verbs: what an any-order model is compared with."""

from .acflow import ACFlow
from .autoregressive import (
    PIXEL_CNNS,
    TRANSFORMERS,
    ARTransformer,
    OATransformer,
    PixelCNN,
    PixelCNNSize,
    TransformerSize,
)
from .baseline import Baseline
from .bits_back import BitsBack, Sent
from .d3pm import D3PM, Absorbing, Gauss, Nearest, Uniform
from .ddpm import DDPM
from .energy import ACE, ACESize, Importance, Quadrature, factor_bias
from .idf import IDF, IDFSize
from .latent import MIWAE, VAE, FixedGaussian, LatentModel, build_convolutional
from .latent_answers import each_log_prob, log_prob, mean, sample
from .latent_training import BaselineRecipe, fit_baseline

__all__ = [
    "ACE",
    "D3PM",
    "DDPM",
    "IDF",
    "MIWAE",
    "PIXEL_CNNS",
    "TRANSFORMERS",
    "VAE",
    "ACESize",
    "ACFlow",
    "ARTransformer",
    "Absorbing",
    "Baseline",
    "BaselineRecipe",
    "BitsBack",
    "FixedGaussian",
    "Gauss",
    "IDFSize",
    "Importance",
    "LatentModel",
    "Nearest",
    "OATransformer",
    "PixelCNN",
    "PixelCNNSize",
    "Quadrature",
    "Sent",
    "TransformerSize",
    "Uniform",
    "build_convolutional",
    "each_log_prob",
    "factor_bias",
    "fit_baseline",
    "log_prob",
    "mean",
    "sample",
]
