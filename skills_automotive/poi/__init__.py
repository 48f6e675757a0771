"""Places near the car: the index of a map, the search over it, and the skill that answers from it."""
from skills_automotive.poi.skills import SKILLS

__all__ = ["SKILLS"]
