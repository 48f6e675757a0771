"""Heights of the simulated country: Monaco climbs from the sea to the Moyenne Corniche within a kilometre, and an electric car feels it.

    write(map_dir())      # <map folder>/elevation.json, which the maps provider reads when it opens

Spot heights, rounded, of places anyone can look up on a topographic map; between them it is interpolated. A rough profile for trying
out consumption and recovery, and no survey: the maps ship without heights, and a product brings its own.
"""
import json
import math
import os
from pathlib import Path

from simulators.car.drive import _metres

SPOTS = (  # lat, lon, metres above the sea
    (43.7270, 7.4180, 3), (43.7285, 7.4150, 6), (43.7316, 7.4163, 9), (43.7335, 7.4205, 4), (43.7355, 7.4215, 5),  # Fontvieille to the harbour
    (43.7312, 7.4200, 58), (43.7305, 7.4255, 55),  # the Rock
    (43.7330, 7.4130, 105), (43.7315, 7.4131, 95), (43.7360, 7.4140, 120), (43.7378, 7.4165, 110), (43.7395, 7.4185, 125),  # Moneghetti
    (43.7385, 7.4225, 60), (43.7392, 7.4276, 42), (43.7405, 7.4245, 85), (43.7420, 7.4275, 75), (43.7445, 7.4305, 70),  # Monte-Carlo, Saint-Roman
    (43.7415, 7.4300, 12), (43.7455, 7.4345, 5), (43.7480, 7.4365, 6), (43.7497, 7.4376, 10),  # Larvotto along the sea
    (43.7400, 7.4130, 190), (43.7430, 7.4180, 210), (43.7450, 7.4240, 190), (43.7480, 7.4310, 120), (43.7265, 7.4080, 80),  # the slopes above
)
NEIGHBOURS, REACH_M = 4, 1500.0


def height_m(lat: float, lon: float) -> float | None:
    """Metres above the sea, weighted by the inverse square of the distance to the four nearest spots; None beyond 1.5 km from all."""
    near = sorted((_metres((lat, lon), spot[:2]), spot[2]) for spot in SPOTS)[:NEIGHBOURS]
    if near[0][0] > REACH_M:
        return None
    if near[0][0] < 1.0:
        return float(near[0][1])
    weights = [1 / distance ** 2 for distance, _ in near]
    return sum(weight * height for weight, (_, height) in zip(weights, near)) / sum(weights)


def profile(shape) -> list[tuple[float, float]]:
    """(metres along, height) at each point of a way; points without a known height are left out."""
    along, out = 0.0, []
    for i, point in enumerate(shape):
        along += _metres(shape[i - 1], point) if i else 0.0
        height = height_m(*point)
        if height is not None and math.isfinite(height):
            out.append((along, height))
    return out


def write(folder: Path) -> Path:
    """Put `elevation.json` beside a map, where the maps provider looks for it; returns its path."""
    path = Path(folder) / "elevation.json"
    partial = path.with_name(path.name + ".part")
    partial.write_text(json.dumps({"points": [list(spot) for spot in SPOTS]}), encoding="utf-8")
    os.replace(partial, path)
    return path
