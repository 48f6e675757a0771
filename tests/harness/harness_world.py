"""A session of scripted skills on a virtual clock, as the harness tests use it."""
from harness import HarnessSettings, SkillSpec
from harness.testing import ListedCatalog, scripted

POI = SkillSpec("poi.find", timeout_s=90.0, slow=True, supersedes="poi")
GO = SkillSpec("navigation.go", timeout_s=10.0, supersedes="navigation")
WINDOW = SkillSpec("vehicle.set_window", supersedes="window", derived=frozenset({"position"}))
TEMPERATURE = SkillSpec("vehicle.set_temperature", supersedes="temperature")
SCENE = SkillSpec("scene.look", timeout_s=30.0, on_interrupt="cancel")
SPECS = (POI, GO, WINDOW, TEMPERATURE, SCENE)


def world(scripts=None, *, specs=SPECS, sentences=None, models=None, planner=None, **settings):
    """(conversation, runner, list of transitions)."""
    made = scripted(scripts, catalog=ListedCatalog(*specs, sentences=sentences, models=models), planner=planner,
                    settings=HarnessSettings(**settings))
    return made.talk, made.runner, made.seen


def state(talk, task_id):
    task = talk.harness.ledger.get(task_id)
    return str(task.execution), str(task.delivery), task.delivery_reason


def states(seen, task_id, machine):
    return [t.dst for t in seen if t.task.id == task_id and t.machine == machine]
