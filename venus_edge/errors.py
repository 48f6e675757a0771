"""The base of every error tree in the product.

VenusError
├── ConfigError        a setting, file or argument is wrong; the message names it and the allowed values
├── BusyError          a bounded resource is full; try again later
└── ... each package draws its own tree in its errors.py
"""


class VenusError(Exception):
    """A fault with a stable `code`, whether a retry may help, and what the caller should do."""

    code = "internal"
    retryable = False
    advice = "Report this with the log line that carries the same id."

    def __init__(self, message: str, **data):
        super().__init__(message)
        self.message = message
        self.data = data

    def as_dict(self) -> dict:
        """The error as it travels on a wire: code, message, retryable, data."""
        return {"code": self.code, "message": self.message, "retryable": self.retryable, "data": self.data}


class ConfigError(VenusError):
    """Bad input from the person who started us: exit status 2, one line, no traceback."""

    code = "config"
    advice = "Correct the named field or file."


class BusyError(VenusError):
    """A bounded queue or pool is full."""

    code = "busy"
    retryable = True
    advice = "Try again later, or raise the limit that the message names."
