"""Logging for every process: one line per record on standard error, ids only, never words or audio."""
import logging
import os
import sys

from venus_edge.redact import guard


def setup(name: str) -> logging.Logger:
    """Configure the root logger once for the process `name`; level from VENUS_LOG_LEVEL (default INFO)."""
    logging.basicConfig(stream=sys.stderr, level=os.environ.get("VENUS_LOG_LEVEL", "INFO").upper(),
                        format=f"%(asctime)s {name} %(levelname)s %(name)s %(message)s")
    for noisy in ("livekit", "grpc", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    guard("livekit")  # it quotes refused tokens
    return logging.getLogger(name)
