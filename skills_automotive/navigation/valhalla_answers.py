"""Valhalla's JSON answers as the host's plain data: routes of one or more legs, stretches of road, areas, matched traces."""
from harness.host.providers import Area, Edge, Maneuver, Matched, Point, Route
from skills_automotive.navigation.geometry import Line, decode_polyline

ARRIVALS = (4, 5, 6)
"""Types of the maneuvers that end a leg."""
EDGE_ATTRIBUTES = ["edge.names", "edge.way_id", "edge.road_class", "edge.speed", "edge.length", "edge.tunnel", "edge.toll",
                   "edge.begin_shape_index", "edge.end_shape_index"]
TRACE_ATTRIBUTES = EDGE_ATTRIBUTES + ["shape", "matched.point", "matched.type", "matched.edge_index", "matched.distance_from_trace_point",
                                      "matched.distance_along_edge"]


def route_of(trip: dict) -> Route:
    """A trip with all its legs as one route; where a leg ends, its arrival is a maneuver like any other."""
    shape: list = []
    maneuvers: list[Maneuver] = []
    for leg in trip["legs"]:
        points = decode_polyline(leg["shape"])
        begin = len(shape) - 1 if shape else 0
        shape += points[1:] if shape else points
        for m in leg["maneuvers"]:
            if maneuvers and m["type"] in (1, 2, 3) and begin == maneuvers[-1].begin:
                m = m | {"type": 8}  # going on after a stop is no start
            maneuvers.append(Maneuver(
                type=m["type"], street=(m.get("street_names") or m.get("begin_street_names") or [""])[0], length_m=m["length"] * 1000,
                time_s=m["time"], instruction=m["instruction"], begin=begin + m["begin_shape_index"],
                exit=m.get("roundabout_exit_count", 0), sign=_sign(m.get("sign") or {})))
    summary = trip["summary"]
    return Route(length_m=summary["length"] * 1000, time_s=summary["time"], streets=merged(m.street for m in maneuvers),
                 shape=tuple(shape), maneuvers=tuple(maneuvers), tolls=summary["has_toll"], ferries=summary["has_ferry"],
                 motorways=summary["has_highway"])


def _sign(sign: dict) -> str:
    for key in ("exit_toward_elements", "exit_branch_elements", "exit_name_elements"):
        if sign.get(key):
            return ", ".join(element["text"] for element in sign[key][:2])
    return ""


def merged(names) -> tuple[str, ...]:
    """Street names in order, unnamed parts left out, neighbours of the same name as one."""
    kept: list[str] = []
    for name in names:
        if name and (not kept or kept[-1] != name):
            kept.append(name)
    return tuple(kept)


def edges_of(answer: dict) -> tuple[Edge, ...]:
    return tuple(Edge(way_id=e["way_id"], street=(e.get("names") or [""])[0], road_class=e["road_class"], speed_kmh=float(e["speed"]),
                      length_m=e["length"] * 1000, begin=e["begin_shape_index"], end=e["end_shape_index"], tunnel=e.get("tunnel", False),
                      toll=e.get("toll", False)) for e in answer["edges"])


def matched_of(answer: dict) -> Matched | None:
    """None when the last position lies on no road."""
    edges, last = edges_of(answer), answer["matched_points"][-1]
    if last["type"] == "unmatched" or not 0 <= last.get("edge_index", -1) < len(edges):
        return None
    edge = edges[last["edge_index"]]
    shape = decode_polyline(answer["shape"])[edge.begin:edge.end + 1]
    point = Point(last["lat"], last["lon"])
    return Matched(point=point, heading=Line(shape).nearest(point).heading if len(shape) > 1 else 0.0, edge=edge,
                   off_m=last["distance_from_trace_point"], edges=edges)


def area_of(answer: dict) -> Area:
    """GeoJSON has (lon, lat) and closed rings; here it is (lat, lon), and the last corner is not repeated."""
    polygons = []
    for feature in answer["features"]:
        geometry = feature["geometry"]
        parts = [geometry["coordinates"]] if geometry["type"] == "Polygon" else geometry["coordinates"]
        polygons += [tuple(tuple((lat, lon) for lon, lat in ring[:-1]) for ring in rings) for rings in parts]
    return Area(tuple(polygons))
