"""The car itself: climate, seats, windows, tailgate, locks, volume, and questions about its state."""
from skills_automotive.vehicle.body import SetLock, SetTailgate, SetVolume, SetWindow
from skills_automotive.vehicle.climate import AdjustTemperature, SetFan, SetSeatHeating, SetTemperature
from skills_automotive.vehicle.status import Status

SKILLS = [SetTemperature, AdjustTemperature, SetFan, SetSeatHeating, SetWindow, SetTailgate, SetLock, SetVolume, Status]

__all__ = ["SKILLS"]
