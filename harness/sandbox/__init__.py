"""The sandbox of skills: what may run how far trusted, and behind which layers. `Sandbox` goes to harness.execute.runner.SkillRunner;
`SandboxedProcess` (harness.sandbox.process) runs a whole program; `layers()` (harness.sandbox.layers) tells what holds on this machine."""
from harness.sandbox.errors import SandboxMissing
from harness.sandbox.policy import LAYERS, REQUIRED, Layer, Sandbox, Trust

__all__ = ["LAYERS", "REQUIRED", "Layer", "Sandbox", "SandboxMissing", "Trust"]
