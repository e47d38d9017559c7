"""What can go wrong and whose fault it is: every error says what came, what was expected and what to do."""


class AnyOrderError(Exception):
    """Base of all errors that anyorder raises on purpose."""


class InputError(AnyOrderError, ValueError):
    """The data, the question or an argument does not fit."""


class FormatError(AnyOrderError, ValueError):
    """A file is not what it should be: foreign, truncated, damaged or from a newer version."""


class TrainingError(AnyOrderError, RuntimeError):
    """Training cannot go on."""
