"""Errors of the sandbox.

HarnessError
└── SandboxMissing  sandbox_missing  a layer that the trust level requires can't be had on this machine; nothing was run
"""
from harness.errors import HarnessError


class SandboxMissing(HarnessError):
    """`missing`: the layers' names; the message says of each why it is not there."""

    code = "sandbox_missing"
    advice = "Use a kernel with the named layers, or for development only set allow_missing."
