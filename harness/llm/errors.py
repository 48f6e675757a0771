"""Errors of an OpenAI-compatible endpoint. None carries the endpoint's own text: it may quote the user's words or the key.

HarnessError
└── EndpointError            endpoint
    ├── EndpointUnavailable  endpoint_unavailable  it did not answer in time, is overloaded or can't be reached
    ├── EndpointRefused      endpoint_refused      it will not take such requests: key, model name, address or an unsupported option
    └── BadAnswer            bad_answer            it answered, but not what was asked for

`data["reason"]` is one of REASONS; `data["status"]` the HTTP status, where there was one.
"""
from harness.errors import HarnessError

REASONS = ("timeout", "connection", "rate", "server", "paused", "refused", "not_json", "no_choice", "too_large", "truncated",
           "refusal", "filtered", "schema", "arguments", "target")


class EndpointError(HarnessError):
    code = "endpoint"

    def __init__(self, message: str, reason: str, **data):
        super().__init__(message, reason=reason, **data)
        self.reason = reason


class EndpointUnavailable(EndpointError):
    code = "endpoint_unavailable"
    retryable = True
    advice = "Try again later; look at the endpoint's own state and at the timeouts in the settings."


class EndpointRefused(EndpointError):
    code = "endpoint_refused"
    advice = "Check base_url, model and the key; the endpoint's documentation says which options it takes."


class BadAnswer(EndpointError):
    code = "bad_answer"
    advice = "The model or the endpoint does not keep to the requested form; try another one."
