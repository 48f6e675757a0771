"""The shipped map, built once for this folder's tests."""
import pytest

from harness.host.providers import Point
from skills_automotive.navigation.valhalla_maps import open_maps
from skills_automotive.poi.places import open_places
from skills_automotive.testing import build_map

PLACE_D_ARMES = Point(43.7316, 7.4163)


@pytest.fixture(scope="session")
def map_cache(tmp_path_factory):
    return build_map(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def maps(map_cache):
    return open_maps(map_cache)


@pytest.fixture(scope="session")
def places(map_cache):
    return open_places(map_cache)


@pytest.fixture
def here():
    return PLACE_D_ARMES


@pytest.fixture
def car():
    """Signals of a car that stands at Place d'Armes."""
    return {"Vehicle.CurrentLocation.Latitude": PLACE_D_ARMES.lat, "Vehicle.CurrentLocation.Longitude": PLACE_D_ARMES.lon,
            "Vehicle.CurrentLocation.Heading": 90.0}
