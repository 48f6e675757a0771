"""The engine server and its client: a front end behind gRPC."""
from cloud_core.engine.client import EngineClient, EngineSession
from cloud_core.engine.inprocess import InProcessEngine, InProcessSession

__all__ = ["EngineClient", "EngineSession", "InProcessEngine", "InProcessSession"]
