"""What the package exports, and what importing it costs; and its sentences."""
import subprocess
import sys
import tomllib
from pathlib import Path

import harness
from harness import phrases

PUBLIC = """Ask AskBackPlanner Aside BadRequest Closed Contract CorruptJournal DelegateBackend DelegateRequest Delivery Evidence
ExecuteContext Execution Harness HarnessError HarnessSettings HeardWords IllegalTransition Journal JournalFault Ledger MemoryJournal
MemoryStore Moment Plan PlanRequest Planner PreparedReply Record SchedulerLimits ScreenItem Session SkillBackend SkillCall
SkillCatalog SkillOutcome SkillRunner SkillSpec Store Task Transition UnknownSession UnknownTask UserWords open_store replay""".split()


def test_the_public_names_are_these():
    """Adding or removing one is a decision, not an accident."""
    assert harness.__all__ == PUBLIC and all(hasattr(harness, name) for name in PUBLIC)


def test_importing_the_harness_needs_only_pydantic():
    """No numpy, gRPC, LiveKit or other folder of ours comes along."""
    code = "import sys, harness; print(*sorted({m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)))"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    ours = {name for name in loaded if (Path(harness.__file__).parents[1] / name / "__init__.py").exists()}
    assert ours == {"harness", "venus_edge"}
    assert not loaded & {"numpy", "grpc", "livekit", "google", "yaml", "scipy", "onnxruntime", "torch", "psutil"}


def test_every_sentence_can_be_filled_in_both_languages():
    """Each key of the wording with the fields the code gives it; nothing is left unfilled or empty."""
    table = tomllib.loads(Path(harness.__file__).with_name("wording.toml").read_text(encoding="utf-8"))
    keys = []

    def walk(node, prefix):
        if "en" in node:
            keys.append(prefix)
        else:
            for key, value in node.items():
                walk(value, f"{prefix}.{key}" if prefix else key)

    walk(table, "")
    for key in keys:
        for lang in ("en", "zh"):
            text = phrases.say(key, lang, topic="the window", seconds=3, query="charger", destination="the port")
            assert text and "{" not in text
    assert len(keys) > 40
