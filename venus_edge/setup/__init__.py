"""Set-up of a fresh checkout: environment, LiveKit server, models, map. Run as `python3 -m venus_edge.setup`.

Runs on the system's Python before any dependency exists, so it uses the standard library only.
"""
