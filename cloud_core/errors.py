"""Errors of the cloud core.

VenusError
└── CloudError
    ├── SessionLost     the room or the engine went away; the worker ends and is restarted
    └── PeerRejected    a message from a participant that may not send it
"""
from venus_edge.errors import VenusError


class CloudError(VenusError):
    code = "cloud"


class SessionLost(CloudError):
    code = "session_lost"
    retryable = True
    advice = "Restart the worker; the device says hello again."


class PeerRejected(CloudError):
    code = "peer_rejected"
    advice = "Join with a token of the right role."
