"""Keeps join tokens out of messages and logs: a server that refuses one quotes it back in full."""
import logging
import re

_TOKEN = re.compile(r"eyJ[\w-]{8,}(\.[\w-]*){0,2}")
_CAUSES = (("token is expired", "it has expired"), ("not valid yet", "it is not valid yet"),
           ("signature is invalid", "its signature is not of this server's secret"), ("invalid API key", "its key is unknown there"),
           ("permission", "it may not join this room"), ("invalid authorization token", "it is no token"))


def without_tokens(text: str) -> str:
    """`text` with every JSON web token replaced."""
    return _TOKEN.sub("<token>", text)


def why_refused(text: str) -> str | None:
    """What is wrong with the join token, from the server's refusal; None if it did not refuse the token."""
    if not re.search(r"\b40[13]\b", text):
        return None
    return next((cause for words, cause in _CAUSES if words in text), "the server does not accept it")


class _Filter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "eyJ" in message:
            record.msg, record.args = without_tokens(message), ()
        return True


def guard(logger: str) -> None:
    """Redact all that is logged to `logger` itself; calling it again changes nothing."""
    log = logging.getLogger(logger)
    if not any(isinstance(f, _Filter) for f in log.filters):
        log.addFilter(_Filter())
