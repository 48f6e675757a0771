"""The signal server against the unmodified kuksa-client and raw v2 stubs."""

import asyncio
import threading

import grpc
import pytest
from kuksa.val.v2 import types_pb2 as t2
from kuksa.val.v2 import val_pb2 as v2
from kuksa.val.v2 import val_pb2_grpc as g2
from kuksa_client.grpc import Datapoint, DataType, EntryType, MetadataField, VSSClient, VSSClientError

from simulators.car.signals import SignalServer
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS

FULL, READ = "full-token-0123456789", "read-token-0123456789"
TEMP = "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature"
WINDOW = "Vehicle.Cabin.Door.Row1.DriverSide.Window.Position"
WIPER = "Vehicle.Body.Windshield.Rear.Wiping.Mode"  # an actuator that the simulated car has no part for


class Running:
    """A server on its own loop and thread, so that blocking clients can talk to it."""

    def __init__(self, **env):
        self.env = {"VENUS_BUS_ADDR": "127.0.0.1:0", "VENUS_BUS_TOKEN": FULL, "VENUS_BUS_READ_TOKEN": READ, **env}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        self.server = self.call(self._make())
        self.channel = grpc.insecure_channel(self.server.addr)
        self.stub = g2.VALStub(self.channel)
        return self

    async def _make(self):
        server = SignalServer(self.env)
        await server.start()
        return server

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    def __exit__(self, *_exc):
        self.channel.close()
        self.call(self.server.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
        self.loop.close()

    def client(self, token=FULL):
        host, port = self.server.addr.rsplit(":", 1)
        return VSSClient(host, int(port), token=token)

    def rpc(self, method, request, token=FULL):
        metadata = [("authorization", f"Bearer {token}")] if token else []
        return getattr(self.stub, method)(request, metadata=metadata, timeout=5)


@pytest.fixture(scope="module")
def car():
    with Running() as running:
        yield running


def _status(run) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        run()
    return caught.value.code().name


def _actuate(path, **value):
    return v2.ActuateRequest(signal_id=t2.SignalID(path=path), value=t2.Value(**value))


def test_kuksa_client_gets_values_metadata_and_server_info(car):
    """The unmodified client reads what the server holds, with the tree's types, units and ranges."""
    with car.client() as client:
        info = client.get_server_info()
        assert info.name == "venus-edge-signals"
        values = client.get_current_values([TEMP, "Vehicle.Speed", "Vehicle.CurrentLocation.Latitude"])
        assert values[TEMP].value == 20.0 and values["Vehicle.Speed"].value == 0.0
        assert values["Vehicle.CurrentLocation.Latitude"].value == pytest.approx(43.7316)
        meta = client.get_metadata([WINDOW], MetadataField.ALL)[WINDOW]
        assert (meta.data_type, meta.entry_type, meta.unit) == (DataType.UINT8, EntryType.ACTUATOR, "percent")
        assert (meta.value_restriction.min, meta.value_restriction.max) == (0, 100)
        with pytest.raises(VSSClientError) as caught:
            client.get_current_values(["Vehicle.Nope"])
        assert "404" in str(caught.value)


def test_kuksa_client_sets_a_target_and_sees_the_current_value_follow(car):
    """A target set by the client moves the actuator; the subscription ends at the target."""
    with car.client() as client:
        updates = client.subscribe_current_values([TEMP])
        next(updates)
        client.set_target_values({TEMP: Datapoint(23.5)})
        assert next(u[TEMP].value for u in updates if u[TEMP].value == 23.5) == 23.5
        assert client.get_target_values([TEMP])[TEMP].value == 23.5


def test_kuksa_client_publishes_and_subscribes_to_a_branch(car):
    """Publishing reaches a subscriber of the whole branch."""
    with car.client() as client:
        updates = client.subscribe_current_values(["Vehicle.Cabin.HVAC"])
        assert len(next(updates)) > 20
        client.set_current_values({"Vehicle.Cabin.HVAC.AmbientAirTemperature": Datapoint(24.25)})
        path = "Vehicle.Cabin.HVAC.AmbientAirTemperature"
        assert next(u[path].value for u in updates if path in u) == 24.25


def test_kuksa_client_provides_an_actuator(car):
    """A provider over the wire gets the commands for what it claimed."""
    with car.client() as provider, car.client() as client:
        got, ready = [], threading.Event()

        def serve():
            ready.set()
            for update in provider.subscribe_target_values([WIPER]):
                got.append({path: point.value for path, point in update.items()})
                provider.set_current_values({WIPER: Datapoint("FAST")})
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        ready.wait(5)
        changes = client.subscribe_current_values([WIPER])
        next(changes)
        for _ in range(100):
            try:
                car.rpc("Actuate", _actuate(WIPER, string="FAST"))
                break
            except grpc.RpcError as err:  # the provider's claim is still on its way
                assert err.code() == grpc.StatusCode.UNAVAILABLE
        assert next(c[WIPER].value for c in changes if c[WIPER]) == "FAST"
        thread.join(5)
        assert got == [{WIPER: "FAST"}]


@pytest.mark.parametrize(
    "request_, code",
    [
        (_actuate("Vehicle.Nope", bool=True), "NOT_FOUND"),
        (_actuate("Vehicle.Speed", float=3.0), "INVALID_ARGUMENT"),
        (_actuate(WINDOW, uint32=150), "INVALID_ARGUMENT"),
        (_actuate(WINDOW, float=50.0), "INVALID_ARGUMENT"),
        (_actuate("Vehicle.Cabin.Sunroof.Switch", string="HALF"), "INVALID_ARGUMENT"),
        (_actuate(TEMP), "INVALID_ARGUMENT"),
        (v2.ActuateRequest(value=t2.Value(bool=True)), "INVALID_ARGUMENT"),
        (_actuate("Vehicle.Body.Horn.IsActive", bool=True), "UNAVAILABLE"),
    ],
)
def test_actuate_refuses_with_the_brokers_codes(car, request_, code):
    """Each fault has the status code of the real broker."""
    assert _status(lambda: car.rpc("Actuate", request_)) == code


def test_batch_moves_nothing_when_one_command_is_wrong(car):
    """BatchActuate is all or nothing."""
    before = car.server.store.targets.get("Vehicle.Cabin.Infotainment.Media.Volume")
    batch = v2.BatchActuateRequest(actuate_requests=[
        _actuate("Vehicle.Cabin.Infotainment.Media.Volume", uint32=11), _actuate(WINDOW, uint32=101)])
    assert _status(lambda: car.rpc("BatchActuate", batch)) == "INVALID_ARGUMENT"
    assert car.server.store.targets.get("Vehicle.Cabin.Infotainment.Media.Volume") == before


def test_second_provider_is_refused(car):
    """One provider an actuator: the second gets ALREADY_EXISTS, and the first one's leaving frees it."""
    provide = v2.OpenProviderStreamRequest(provide_actuation_request=v2.ProvideActuationRequest(
        actuator_identifiers=[t2.SignalID(path=TEMP)]))
    assert _status(lambda: next(car.rpc("OpenProviderStream", iter([provide])))) == "ALREADY_EXISTS"
    horn = v2.OpenProviderStreamRequest(provide_actuation_request=v2.ProvideActuationRequest(
        actuator_identifiers=[t2.SignalID(path="Vehicle.Body.Horn.IsActive")]))
    first = car.rpc("OpenProviderStream", iter([horn]))
    assert next(first).HasField("provide_actuation_response")
    assert _status(lambda: next(car.rpc("OpenProviderStream", iter([horn])))) == "ALREADY_EXISTS"
    first.cancel()
    for _ in range(200):
        if "Vehicle.Body.Horn.IsActive" not in car.server.store._providers:
            break
        threading.Event().wait(0.01)
    again = car.rpc("OpenProviderStream", iter([horn]))
    assert next(again).HasField("provide_actuation_response")
    again.cancel()


def test_values_ids_metadata_and_publishing_over_v2(car):
    """GetValue(s), ListMetadata, SubscribeById and PublishValue agree on ids, order and values."""
    listed = car.rpc("ListMetadata", v2.ListMetadataRequest(root="Vehicle.Cabin.HVAC.Station.Row1.Driver")).metadata
    ids = {m.path: m.id for m in listed}
    assert len(ids) == 3
    assert len(car.rpc("ListMetadata", v2.ListMetadataRequest(root="")).metadata) == 1263
    assert _status(lambda: car.rpc("ListMetadata", v2.ListMetadataRequest(root="Vehicle.Nope"))) == "NOT_FOUND"
    points = car.rpc("GetValues", v2.GetValuesRequest(signal_ids=[t2.SignalID(path="Vehicle.Speed"), t2.SignalID(id=ids[TEMP])])).data_points
    assert points[0].value.float == 0.0 and points[1].value.HasField("float")
    assert not car.rpc("GetValue", v2.GetValueRequest(signal_id=t2.SignalID(path="Vehicle.Trailer.IsConnected"))).data_point.HasField("value")
    stream = car.rpc("SubscribeById", v2.SubscribeByIdRequest(signal_ids=[ids[TEMP]]))
    assert list(next(stream).entries) == [ids[TEMP]]
    car.rpc("PublishValue", v2.PublishValueRequest(signal_id=t2.SignalID(path=TEMP), data_point=t2.Datapoint(value=t2.Value(float=19.5))))
    assert next(stream).entries[ids[TEMP]].value.float == 19.5
    stream.cancel()
    assert _status(lambda: next(car.rpc("Subscribe", v2.SubscribeRequest()))) == "INVALID_ARGUMENT"
    assert _status(lambda: next(car.rpc("Subscribe", v2.SubscribeRequest(signal_paths=["Vehicle.Cabin"])))) == "NOT_FOUND"
    assert _status(lambda: next(car.rpc("Subscribe", v2.SubscribeRequest(signal_paths=[TEMP], buffer_size=1001)))) == "INVALID_ARGUMENT"


def test_tokens_decide_what_a_client_may_do(car):
    """No or a wrong token: UNAUTHENTICATED; the read-only one reads and nothing else, over v1 and v2, streams too."""
    ask = v2.GetValueRequest(signal_id=t2.SignalID(path="Vehicle.Speed"))
    assert _status(lambda: car.rpc("GetValue", ask, token="")) == "UNAUTHENTICATED"
    assert _status(lambda: car.rpc("GetValue", ask, token=FULL + "x")) == "UNAUTHENTICATED"
    assert _status(lambda: next(car.rpc("Subscribe", v2.SubscribeRequest(signal_paths=[TEMP]), token="no"))) == "UNAUTHENTICATED"
    assert car.rpc("GetValue", ask, token=READ).data_point.value.HasField("float")
    assert _status(lambda: car.rpc("Actuate", _actuate(TEMP, float=21.0), token=READ)) == "PERMISSION_DENIED"
    assert _status(lambda: car.rpc("PublishValue", v2.PublishValueRequest(), token=READ)) == "PERMISSION_DENIED"
    assert _status(lambda: next(car.rpc("OpenProviderStream", iter([]), token=READ))) == "PERMISSION_DENIED"
    with car.client(READ) as client:
        client.get_current_values([TEMP])
        with pytest.raises(VSSClientError):
            client.set_target_values({TEMP: Datapoint(25.0)})
        with pytest.raises(VSSClientError):
            client.authorize("wrong")


def test_slow_subscriber_gets_the_newest_value_and_the_rest_is_counted(car):
    """A reader that doesn't keep up costs one pending value a signal: newest wins, and the drops are counted."""

    async def flood():
        before = METRICS.get("venus_signals_conflated_total")
        with car.server.store.subscribe([TEMP]) as subscription:
            subscription.take()
            for i in range(1000):
                car.server.store.publish(TEMP, 16.0 + i / 2)
            changes = subscription.take()
        return changes[TEMP].value, len(changes), METRICS.get("venus_signals_conflated_total") - before

    assert car.call(flood()) == (515.5, 1, 999)


def test_bad_settings_are_named(car, tmp_path):
    """A taken port, an open bind, a bad address or drive: one ConfigError that names the variable."""

    async def start(**env):
        server = SignalServer({"VENUS_BUS_ADDR": "127.0.0.1:0", **env})
        await server.start()
        await server.stop()

    (tmp_path / "d.yaml").write_text("profile: [[0, 0], [5, 999]]\n")
    for env, words in [
        ({"VENUS_BUS_ADDR": car.server.addr}, "VENUS_BUS_ADDR"),
        ({"VENUS_BUS_ADDR": "0.0.0.0:0", "VENUS_BUS_TOKEN": FULL}, "beyond loopback"),
        ({"VENUS_BUS_ADDR": "127.0.0.1"}, "host:port"),
        ({"VENUS_BUS_READ_TOKEN": READ}, "VENUS_BUS_READ_TOKEN"),
        ({"VENUS_BUS_CERT": "x"}, "VENUS_BUS_KEY"),
        ({"VENUS_DRIVE": str(tmp_path / "absent.json")}, "VENUS_DRIVE"),
        ({"VENUS_DRIVE": str(tmp_path / "d.yaml")}, "profile"),
        ({"VENUS_DRIVE": '{"speeds": []}'}, "speeds"),
        ({"VENUS_DRIVE": '{"initial": {"Vehicle.Nope": 1}}'}, "Vehicle.Nope"),
        ({"VENUS_DRIVE": '{"initial": {"' + WINDOW + '": 120}}'}, "0..100"),
    ]:
        with pytest.raises(ConfigError) as caught:
            asyncio.run(start(**env))
        assert words in str(caught.value), env
