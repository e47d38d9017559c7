"""What can go wrong and whose fault it is: every error says what came, what was expected and what to do."""


class AnyOrderError(Exception):
    """Base of all errors that anyorder raises on purpose."""


class InputError(AnyOrderError, ValueError):
    """The data, the question or an argument does not fit."""


class UnavailableError(InputError, AttributeError):
    """What this model does not have, such as pixels or a codec: for `hasattr` and `dir` it is not there."""


class FormatError(AnyOrderError, ValueError):
    """A file is not what it should be: foreign, truncated, damaged or from a newer version."""


class WriteError(InputError, OSError):
    """A file cannot be written: the disk is full, the folder is not there or not ours. What was there is untouched."""


class TrainingError(AnyOrderError, RuntimeError):
    """Training cannot go on."""


class Note(UserWarning):
    """A remark whose advice reads differently in Python and on the command line; None there means that it is said elsewhere."""

    def __init__(self, text: str, advice: str = "", command_line: str | None = "") -> None:
        super().__init__(f"{text} {advice}".strip())
        self.command_line = None if command_line is None else f"{text} {command_line}".strip()
