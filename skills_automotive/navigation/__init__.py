"""Navigation: the maps provider over Valhalla, the skills that set, change, tell and end the route, and turn-by-turn guidance."""
from skills_automotive.navigation import ev_skills, route_skills, skills

SKILLS = [*skills.SKILLS, *route_skills.SKILLS, *ev_skills.SKILLS]

__all__ = ["SKILLS"]
