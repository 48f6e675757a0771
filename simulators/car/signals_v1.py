"""The part of kuksa.val.v1.VAL that kuksa-client 0.6 needs: Get, Set, Subscribe, GetServerInfo.

Errors come per entry inside the answer, with HTTP-like codes, as v1 clients expect. Setting a target is a command to
the actuator's provider, as in v2; without a provider the entry fails with 503.
"""

import grpc
from kuksa.val.v1 import types_pb2 as t1
from kuksa.val.v1 import val_pb2 as v1
from kuksa.val.v1 import val_pb2_grpc as g1

from simulators.car.signals_auth import Tokens
from simulators.car.signals_store import BadValue, NoProvider, SignalError, SignalStore, UnknownSignal
from simulators.car.signals_v2 import NAME, VERSION, status
from simulators.car.signals_wire import datapoint_v1, metadata_v1, take
from simulators.car.vss import Spec

_CODES = {UnknownSignal: (404, "not_found"), BadValue: (400, "bad_request"), NoProvider: (503, "unavailable")}
_VALUE, _TARGET, _METADATA = t1.FIELD_VALUE, t1.FIELD_ACTUATOR_TARGET, t1.FIELD_METADATA
_VIEWS = {
    t1.VIEW_UNSPECIFIED: {_VALUE}, t1.VIEW_CURRENT_VALUE: {_VALUE}, t1.VIEW_TARGET_VALUE: {_TARGET},
    t1.VIEW_METADATA: {_METADATA}, t1.VIEW_FIELDS: set(), t1.VIEW_ALL: {_VALUE, _TARGET, _METADATA},
}  # fmt: skip


def _wanted(view: int, fields) -> set[int]:
    """The parts to answer with: value, target, metadata (one metadata field asks for all of it)."""
    return _VIEWS.get(view, {_VALUE}) | {_METADATA if f >= _METADATA else f for f in fields}


def _entry_error(path: str, err: SignalError) -> t1.DataEntryError:
    code, reason = _CODES.get(type(err), (500, err.code))
    return t1.DataEntryError(path=path, error=t1.Error(code=code, reason=reason, message=err.message))


class V1(g1.VALServicer):
    """One instance serves all clients. `tokens`: Set checks per entry whether the token may also provide values."""

    def __init__(self, store: SignalStore, tokens: Tokens = Tokens()):
        self.store, self.tokens = store, tokens

    async def GetServerInfo(self, request, context):
        return v1.GetServerInfoResponse(name=NAME, version=VERSION)

    def _entry(self, spec: Spec, wanted: set[int]) -> t1.DataEntry:
        entry = t1.DataEntry(path=spec.path)
        if _VALUE in wanted and spec.path in self.store.current:
            entry.value.CopyFrom(datapoint_v1(spec, self.store.current[spec.path]))
        if _TARGET in wanted and spec.path in self.store.targets:
            entry.actuator_target.CopyFrom(datapoint_v1(spec, self.store.targets[spec.path]))
        if _METADATA in wanted:
            entry.metadata.CopyFrom(metadata_v1(spec))
        return entry

    async def Get(self, request, context):
        answer = v1.GetResponse()
        for asked in request.entries:
            specs = self.store.below(asked.path) if asked.path else []
            if not specs:
                answer.errors.append(_entry_error(asked.path, UnknownSignal(f"no signal {asked.path!r} in the tree")))
            answer.entries.extend(self._entry(spec, _wanted(asked.view, asked.fields)) for spec in specs)
        if answer.errors:
            answer.error.CopyFrom(answer.errors[0].error)
        return answer

    async def Set(self, request, context):
        answer = v1.SetResponse()
        scopes = self.tokens.scopes(dict(context.invocation_metadata()).get("authorization")) or frozenset()
        for update in request.updates:
            try:
                spec = self.store.spec(update.entry.path)
                if _VALUE in update.fields:
                    if "provide" not in scopes:
                        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "the token lacks the scope provide")
                    self.store.publish(spec.path, take(update.entry.value, spec, "value"))
                if _TARGET in update.fields:
                    self.store.actuate([(spec.path, take(update.entry.actuator_target, spec, "value"))])
            except SignalError as err:
                answer.errors.append(_entry_error(update.entry.path, err))
        return answer

    async def Subscribe(self, request, context):
        async with status(context):
            wanted: dict[str, set[int]] = {}
            for asked in request.entries:
                specs = self.store.below(asked.path) if asked.path else []
                if not specs:
                    raise UnknownSignal(f"no signal {asked.path!r} in the tree")
                for spec in specs:
                    wanted.setdefault(spec.path, set()).update(_wanted(asked.view, asked.fields))
            if not wanted:
                raise BadValue("no signals to subscribe to")
            if any(parts == {_TARGET} for parts in wanted.values()):
                await context.abort(grpc.StatusCode.UNIMPLEMENTED, "target values: use kuksa.val.v2 OpenProviderStream")
            with self.store.subscribe(wanted) as subscription:
                paths = list(wanted)
                subscription.take()
                while True:
                    answer = v1.SubscribeResponse()
                    for path in paths:
                        answer.updates.add(entry=self._entry(self.store.specs[path], wanted[path]), fields=sorted(wanted[path]))
                    yield answer
                    paths = list(await subscription.changes())
