"""Shared autonomy: an operator moves some joints, the model moves the rest."""
