"""Running skills: the registry of what is installed, and a process with a hard deadline for each call."""
