"""From "my side" to signals: which VSS branch a speaker's zone means, and how to speak of it.

VSS names front seats by driver and passenger, and rear ones too, so left and right depend on which side the driver sits.
"""
from harness.host.errors import NotFound
from harness.skill import SkillContext

DRIVER_POSITION = "Vehicle.Cabin.DriverPosition"
WINDOWS = ("driver", "passenger", "rear_left", "rear_right")
_NAMES = {"driver": ("the driver's", "驾驶位"), "passenger": ("the passenger's", "副驾驶位"), "rear_left": ("the rear left", "左后"),
          "rear_right": ("the rear right", "右后")}


async def seat_of(ctx: SkillContext, zone: str) -> tuple[str, str]:
    """(row, side) of a zone, such as ("Row2", "Passenger"); "speaker" is whoever asked, and the driver when nobody knows who."""
    zone = ctx.zone if zone == "speaker" else zone
    if zone == "passenger":
        return "Row1", "Passenger"
    if zone not in ("rear_left", "rear_right"):
        return "Row1", "Driver"
    try:
        right_hand = (await ctx.vehicle.get(DRIVER_POSITION))[DRIVER_POSITION].value == "RIGHT"
    except NotFound:
        right_hand = False
    return "Row2", "Driver" if (zone == "rear_left") != right_hand else "Passenger"


def window_words(zone: str, lang: str) -> str:
    """"the driver's window", "all the windows", "the window" for the speaker's own."""
    if zone == "all":
        return "所有车窗" if lang == "zh" else "all the windows"
    if zone in _NAMES:
        return f"{_NAMES[zone][1]}车窗" if lang == "zh" else f"{_NAMES[zone][0]} window"
    return "车窗" if lang == "zh" else "the window"


def door_words(zone: str, lang: str) -> str:
    return f"{_NAMES[zone][1]}车门" if lang == "zh" else f"{_NAMES[zone][0]} door"


def side_words(zone: str, lang: str) -> str:
    """Where a climate setting applies: "on the passenger's side", "everywhere"; "" for the speaker's own."""
    if zone == "all":
        return "全车" if lang == "zh" else "everywhere"
    if zone in ("driver", "passenger"):
        return _NAMES[zone][1] if lang == "zh" else f"on {_NAMES[zone][0]} side"
    return ""
