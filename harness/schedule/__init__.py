"""Who runs when: one fair scheduler for the process, a lane for each session."""
