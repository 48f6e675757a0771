"""Between the store's plain values and the protobuf messages of kuksa.val v1 and v2."""

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from kuksa.val.v1 import types_pb2 as t1
from kuksa.val.v2 import types_pb2 as t2

from simulators.car.signals_store import BadValue, Reading
from simulators.car.vss import Spec

# 8- and 16-bit integers travel in the 32-bit fields.
FIELD = {
    "string": "string", "boolean": "bool", "int8": "int32", "int16": "int32", "int32": "int32", "int64": "int64",
    "uint8": "uint32", "uint16": "uint32", "uint32": "uint32", "uint64": "uint64", "float": "float", "double": "double",
}  # fmt: skip
_ORDER = ("string", "boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double")
DATA_TYPE = {name: 1 + i for i, name in enumerate(_ORDER)} | {f"{name}[]": 20 + i for i, name in enumerate(_ORDER)}
ENTRY_TYPE = {"attribute": 1, "sensor": 2, "actuator": 3}
_V1_RESTRICTION = {"int": "signed", "uin": "unsigned", "flo": "floating_point", "dou": "floating_point", "str": "string"}


def field_of(spec: Spec) -> str:
    return FIELD[spec.base] + ("_array" if spec.is_array else "")


def put(message, spec: Spec, value: Any) -> None:
    """Write `value` into a v1 Datapoint or a v2 Value: their oneof has the same field names."""
    if spec.is_array:
        getattr(message, field_of(spec)).SetInParent()
        getattr(message, field_of(spec)).values.extend(value)
    else:
        setattr(message, field_of(spec), value)


def take(message, spec: Spec, oneof: str = "typed_value") -> Any:
    """The plain value of a v1 Datapoint (oneof "value") or a v2 Value; raises BadValue for another type than the signal's."""
    field = message.WhichOneof(oneof)
    if field != field_of(spec):
        raise BadValue(f"{spec.path} is {spec.datatype}: the field must be {field_of(spec)}, got {field or 'none'}")
    value = getattr(message, field)
    return list(value.values) if spec.is_array else value


def _stamp(wall: float) -> Timestamp:
    return Timestamp(seconds=int(wall), nanos=int((wall % 1) * 1e9))


def datapoint_v2(spec: Spec, reading: Reading | None) -> t2.Datapoint:
    """A signal that nobody has published yet is an empty datapoint."""
    if reading is None:
        return t2.Datapoint()
    point = t2.Datapoint(timestamp=_stamp(reading.wall))
    put(point.value, spec, reading.value)
    return point


def datapoint_v1(spec: Spec, reading: Reading) -> t1.Datapoint:
    point = t1.Datapoint(timestamp=_stamp(reading.wall))
    put(point, spec, reading.value)
    return point


def metadata_v2(spec: Spec) -> t2.Metadata:
    meta = t2.Metadata(
        path=spec.path, id=spec.id, data_type=DATA_TYPE[spec.datatype], entry_type=ENTRY_TYPE[spec.kind],
        description=spec.description, comment=spec.comment, deprecation=spec.deprecation, unit=spec.unit,
    )  # fmt: skip
    cast = float if spec.base in ("float", "double") else int
    if spec.allowed:
        getattr(meta.allowed_values, FIELD[spec.base] + "_array").values.extend(spec.allowed)
    if spec.low is not None:
        setattr(meta.min, FIELD[spec.base], cast(spec.low))
    if spec.high is not None:
        setattr(meta.max, FIELD[spec.base], cast(spec.high))
    return meta


def metadata_v1(spec: Spec) -> t1.Metadata:
    meta = t1.Metadata(
        data_type=DATA_TYPE[spec.datatype], entry_type=ENTRY_TYPE[spec.kind], description=spec.description,
        comment=spec.comment or None, deprecation=spec.deprecation or None, unit=spec.unit or None,
    )  # fmt: skip
    restriction = _V1_RESTRICTION.get(spec.base[:3])
    if restriction and (spec.allowed or spec.low is not None or spec.high is not None):
        box = getattr(meta.value_restriction, restriction)
        box.allowed_values.extend(spec.allowed)
        cast = float if restriction == "floating_point" else int
        if restriction != "string" and spec.low is not None:
            box.min = cast(spec.low)
        if restriction != "string" and spec.high is not None:
            box.max = cast(spec.high)
    return meta
