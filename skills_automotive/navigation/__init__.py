"""Navigation: the maps provider over Valhalla and the skills that set, tell and end the route."""
from skills_automotive.navigation.skills import SKILLS

__all__ = ["SKILLS"]
