"""What the benches say: requests with what must be understood of them, interruptions, listener's signals. Made beforehand by prepare."""
from dataclasses import dataclass, field
from typing import Any

VOICES = ("marc", "claire")
"""Bench lines are spoken by these in turn: line k by VOICES[k % 2]."""


@dataclass(frozen=True)
class BenchLine:
    """`capability` None: the front end answers it by itself. `heard`: words of which one must be in the answer."""

    say: str
    capability: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    heard: str = ""
    pause: bool = False
    """A pause of 0.6 s or more lies inside, where the sentence isn't complete: what is complete is answered."""


VOICE = (
    BenchLine("How much battery do we have left?", "vehicle.status", {"what": "battery"}, "percent|battery"),
    BenchLine("Set the temperature to twenty-two degrees.", "vehicle.set_temperature", {"celsius": 22}, "22"),
    BenchLine("Find me [pause 0.7] a pharmacy nearby.", "poi.find", {"query": "pharmacy"}, "pharmacy", True),
    BenchLine("How fast are we going?", "vehicle.status", {"what": "speed"}, "kilometers|speed|standing|parked|stopped|moving"),
    BenchLine("Is a door open?", "vehicle.status", {"what": "doors"}, "door|doors"),
    BenchLine("Turn on the fan.", "vehicle.set_fan", {"level": 50}, "fan"),
    BenchLine("What can you do?", None, {}, "find places"),
    BenchLine("Is there a restaurant nearby?", "poi.find", {"query": "restaurant"}, "restaurant"),
    BenchLine("Take me to the casino.", "navigation.go", {"destination": "casino"}, "casino"),
    BenchLine("When do we arrive?", "navigation.status", {"what": "eta"}, "arrive|minute|minutes|there"),
    BenchLine("Make it [pause 0.7] two degrees warmer.", "vehicle.adjust_temperature", {"delta": 2}, "degrees", True),
    BenchLine("Turn the volume up.", "vehicle.set_volume", {}, "volume"),
    BenchLine("Is there a pharmacy nearby?", "poi.find", {"query": "pharmacy"}, "pharmacy"),
    BenchLine("What is the outside temperature?", "vehicle.status", {"what": "outside_temperature"}, "degrees"),
    BenchLine("Lock the doors.", "vehicle.set_lock", {"locked": True}, "lock|locked"),
    BenchLine("Set the temperature [pause 0.8] to twenty degrees.", "vehicle.set_temperature", {"celsius": 20}, "20", True),
    BenchLine("How far is it?", "navigation.status", {"what": "distance"}, "kilometers|meters|left|there"),
    BenchLine("What is our range?", "vehicle.status", {"what": "range"}, "range|kilometers"),
    BenchLine("Cancel the route.", "navigation.cancel", {}, "route|cancelled|navigation|guidance|stopped"),
    BenchLine("Turn on the driver's seat heating.", "vehicle.set_seat_heating", {"level": 2, "seat": "driver"}, "seat"),
)
LONG_ANSWER = ("What can you do?", "Find me a charging station nearby and take me there.", "Is there a pharmacy nearby?")
"""Requests whose answers last long enough to be interrupted."""
INTERRUPTIONS = (
    BenchLine("No, take me to the casino instead.", "navigation.go", {"destination": "casino"}),
    BenchLine("How fast are we going?", "vehicle.status", {"what": "speed"}),
    BenchLine("Stop.", None),
    BenchLine("Set the temperature to twenty-two degrees.", "vehicle.set_temperature", {"celsius": 22}),
    BenchLine("When do we arrive?", "navigation.status", {"what": "eta"}),
    BenchLine("Never mind.", None),
)
BACKCHANNELS = ("mm-hmm", "uh-huh", "Yeah.", "Okay.", "Right.")


def every_line() -> list[tuple[str, str]]:
    """(text, voice) of all that a bench may say."""
    alternating = [line.say for line in VOICE]
    both = [*LONG_ANSWER, *(line.say for line in INTERRUPTIONS), *BACKCHANNELS]
    return list(dict.fromkeys([*((say, VOICES[k % 2]) for k, say in enumerate(alternating)),
                               *((say, voice) for say in both for voice in VOICES)]))
