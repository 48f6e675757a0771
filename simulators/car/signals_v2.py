"""kuksa.val.v2.VAL over the signal store, with the status codes of the databroker.

NOT_FOUND no such signal · INVALID_ARGUMENT wrong type, range or not an actuator · UNAVAILABLE no provider ·
ALREADY_EXISTS second provider · DATA_LOSS the provider's queue is full.
"""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import grpc
from kuksa.val.v2 import types_pb2 as t2
from kuksa.val.v2 import val_pb2 as v2
from kuksa.val.v2 import val_pb2_grpc as g2

from simulators.car import signals_store as store_errors
from simulators.car.signals_store import BadValue, ProviderLost, SignalError, SignalStore, UnknownSignal
from simulators.car.signals_wire import datapoint_v2, metadata_v2, put, take
from simulators.car.vss import Spec
from venus_edge.metrics import METRICS

NAME, VERSION = "venus-edge-signals", "0.1.0"
MAX_PATH = 1000
MAX_BUFFER = 1000
PROVIDER_QUEUE = 256
STATUS = {
    store_errors.UnknownSignal: grpc.StatusCode.NOT_FOUND,
    store_errors.BadValue: grpc.StatusCode.INVALID_ARGUMENT,
    store_errors.NoProvider: grpc.StatusCode.UNAVAILABLE,
    store_errors.ProviderTaken: grpc.StatusCode.ALREADY_EXISTS,
    store_errors.ProviderLost: grpc.StatusCode.DATA_LOSS,
}


@asynccontextmanager
async def status(context):
    """Turn a SignalError into its gRPC status."""
    try:
        yield
    except SignalError as err:
        await context.abort(STATUS[type(err)], err.message)


class StreamProvider:
    """A provider at the other end of an OpenProviderStream; its queue is bounded, and a full one refuses the command."""

    def __init__(self, store: SignalStore):
        self.store = store
        self.out: asyncio.Queue = asyncio.Queue(PROVIDER_QUEUE)

    def actuate(self, commands: list[tuple[str, Any]]) -> None:
        batch = v2.BatchActuateStreamRequest()
        for path, value in commands:
            spec = self.store.spec(path)
            request = batch.actuate_requests.add(signal_id=t2.SignalID(id=spec.id))
            put(request.value, spec, value)
        self.send(v2.OpenProviderStreamResponse(batch_actuate_stream_request=batch))

    def send(self, message) -> None:
        try:
            self.out.put_nowait(message)
        except asyncio.QueueFull:
            METRICS.add("venus_signals_provider_lost_total")
            raise ProviderLost(f"the provider has {PROVIDER_QUEUE} commands it did not take") from None


class V2(g2.VALServicer):
    """One instance serves all clients."""

    def __init__(self, store: SignalStore):
        self.store = store

    def _spec(self, signal_id: t2.SignalID) -> Spec:
        kind = signal_id.WhichOneof("signal")
        if kind is None:
            raise BadValue("signal_id has neither path nor id")
        if kind == "path" and len(signal_id.path) > MAX_PATH:
            raise BadValue(f"path is longer than {MAX_PATH} characters")
        return self.store.spec(getattr(signal_id, kind))

    def _point(self, spec: Spec) -> t2.Datapoint:
        return datapoint_v2(spec, self.store.current.get(spec.path))

    async def GetServerInfo(self, request, context):
        return v2.GetServerInfoResponse(name=NAME, version=VERSION, commit_hash="")

    async def GetValue(self, request, context):
        async with status(context):
            return v2.GetValueResponse(data_point=self._point(self._spec(request.signal_id)))

    async def GetValues(self, request, context):
        async with status(context):
            return v2.GetValuesResponse(data_points=[self._point(self._spec(i)) for i in request.signal_ids])

    async def ListMetadata(self, request, context):
        async with status(context):
            if len(request.root) > MAX_PATH:
                raise BadValue(f"root is longer than {MAX_PATH} characters")
            specs = self.store.below(request.root)
            if not specs:
                raise UnknownSignal(f"no branch or signal {request.root!r} in the tree")
            return v2.ListMetadataResponse(metadata=map(metadata_v2, specs))

    async def PublishValue(self, request, context):
        async with status(context):
            spec = self._spec(request.signal_id)
            self.store.publish(spec.path, take(request.data_point.value, spec))
            return v2.PublishValueResponse()

    async def Actuate(self, request, context):
        async with status(context):
            self._actuate([request])
            return v2.ActuateResponse()

    async def BatchActuate(self, request, context):
        async with status(context):
            self._actuate(request.actuate_requests)
            return v2.BatchActuateResponse()

    async def ActuateStream(self, requests, context):
        async with status(context):
            async for request in requests:
                self._actuate([request])
        return v2.ActuateStreamResponse()

    def _actuate(self, requests) -> None:
        specs = [self._spec(request.signal_id) for request in requests]
        self.store.actuate([(spec.path, take(r.value, spec)) for spec, r in zip(specs, requests)])

    async def Subscribe(self, request, context):
        async with status(context):
            async for changes in self._subscribe(request, [self.store.spec(p) for p in request.signal_paths], context):
                yield v2.SubscribeResponse(entries={spec.path: point for spec, point in changes})

    async def SubscribeById(self, request, context):
        async with status(context):
            async for changes in self._subscribe(request, [self.store.spec(i) for i in request.signal_ids], context):
                yield v2.SubscribeByIdResponse(entries={spec.id: point for spec, point in changes})

    async def _subscribe(self, request, specs: list[Spec], context):
        if not specs:
            raise BadValue("no signals to subscribe to")
        if request.buffer_size > MAX_BUFFER:
            raise BadValue(f"buffer_size is {request.buffer_size}; at most {MAX_BUFFER}")
        pause_s = request.filter.min_sample_interval.interval_ms / 1000
        with self.store.subscribe(spec.path for spec in specs) as subscription:
            subscription.take()
            yield [(spec, self._point(spec)) for spec in specs]
            while True:
                if pause_s:
                    await self.store.clock.sleep(pause_s)
                changes = await subscription.changes()
                yield [(self.store.specs[path], datapoint_v2(self.store.specs[path], r)) for path, r in changes.items()]

    async def OpenProviderStream(self, requests, context):
        provider = StreamProvider(self.store)
        reader = asyncio.create_task(self._read_provider(requests, provider))
        try:
            async with status(context):
                while True:
                    getter = asyncio.ensure_future(provider.out.get())
                    # a client that has said all it wants to say still takes commands: only its error ends the stream
                    waiting = {getter} if reader.done() else {getter, reader}
                    try:
                        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                        if reader.done():
                            reader.result()
                        if getter.done():
                            yield getter.result()
                    finally:
                        getter.cancel()
        finally:
            reader.cancel()
            self.store.release(provider)

    async def _read_provider(self, requests, provider: StreamProvider) -> None:
        async for message in requests:
            action = message.WhichOneof("action")
            if action == "provide_actuation_request":
                paths = [self._spec(i).path for i in message.provide_actuation_request.actuator_identifiers]
                self.store.claim(paths, provider)
                provider.send(v2.OpenProviderStreamResponse(provide_actuation_response=v2.ProvideActuationResponse()))
            elif action == "publish_values_request":
                provider.send(self._publish(message.publish_values_request))
            elif action == "provide_signal_request":
                for signal_id in message.provide_signal_request.signals_sample_intervals:
                    self.store.spec(signal_id)
                provider.send(v2.OpenProviderStreamResponse(provide_signal_response=v2.ProvideSignalResponse()))
            elif action == "batch_actuate_stream_response":
                METRICS.add("venus_signals_provider_errors_total", bool(message.batch_actuate_stream_response.error.code > 1))

    def _publish(self, request: v2.PublishValuesRequest) -> v2.OpenProviderStreamResponse:
        answer = v2.PublishValuesResponse(request_id=request.request_id)
        for signal_id, point in request.data_points.items():
            try:
                spec = self.store.spec(signal_id)
                self.store.publish(spec.path, take(point.value, spec))
            except SignalError as err:
                code = t2.ERROR_CODE_NOT_FOUND if isinstance(err, UnknownSignal) else t2.ERROR_CODE_INVALID_ARGUMENT
                answer.status[signal_id].CopyFrom(t2.Error(code=code, message=err.message))
        return v2.OpenProviderStreamResponse(publish_values_response=answer)
