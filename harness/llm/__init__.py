"""Planning, wording and answering by an OpenAI-compatible endpoint. Costs nothing until an LLMClient is made."""
from harness.llm.agent import DIRECT, GENERAL, DirectAnswer, GeneralTask, Media
from harness.llm.backend import LLMBackend
from harness.llm.client import LLMClient, Reply, Usage
from harness.llm.errors import BadAnswer, EndpointError, EndpointRefused, EndpointUnavailable
from harness.llm.oralizer import LLMOralizer
from harness.llm.planner import OpenAIPlanner
from harness.llm.settings import LLMSettings

__all__ = [
    "BadAnswer", "DIRECT", "DirectAnswer", "EndpointError", "EndpointRefused", "EndpointUnavailable", "GENERAL", "GeneralTask",
    "LLMBackend", "LLMClient", "LLMOralizer", "LLMSettings", "Media", "OpenAIPlanner", "Reply", "Usage",
]
