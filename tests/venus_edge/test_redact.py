"""A join token never gets into a message or a log, whoever quotes it."""
import logging

import pytest

from venus_edge.redact import guard, why_refused, without_tokens
from venus_edge.tokens import mint

TOKEN = mint("venus", "s" * 32, identity="device-1", room="venus")
REFUSAL = "engine: signal failure: client error: 401 Unauthorized - invalid token: {}, error: token has invalid claims: token is expired"


def test_a_refusal_that_quotes_the_token_is_told_without_it():
    told = without_tokens(REFUSAL.format(TOKEN))
    assert not any(part in told for part in TOKEN.split(".")) and "expired" in told
    assert without_tokens("room: 401 Unauthorized") == "room: 401 Unauthorized"


@pytest.mark.parametrize("text, why", [
    (REFUSAL.format(TOKEN), "it has expired"), ("401 Unauthorized - invalid API key: other", "its key is unknown there"),
    ("error: token signature is invalid: signature is invalid, 401", "its signature is not of this server's secret"),
    ("403 Forbidden", "the server does not accept it"), ("IO error: Connection refused (os error 111)", None), ("port 4010 is closed", None)])
def test_only_a_refusal_of_the_token_is_taken_for_one(text, why):
    assert why_refused(text) == why


def test_a_guarded_logger_redacts_message_and_arguments(caplog):
    guard("test.native")
    guard("test.native")
    log = logging.getLogger("test.native")
    assert len(log.filters) == 1
    with caplog.at_level(logging.INFO, "test.native"):
        log.warning("refused: %s", TOKEN)
        log.info("nothing %s", "here")
    assert caplog.messages == ["refused: <token>", "nothing here"]
