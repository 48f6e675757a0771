"""Makes engine_pb2.py and engine_pb2_grpc.py from engine.proto:  python -m cloud_core.engine.generate

Needs grpcio-tools (kuksa-client brings it). The generated files are committed; a test checks that they match the proto.
"""
from pathlib import Path


def generate(target: Path) -> None:
    """Write both files below `target` (the folder that holds `cloud_core/`)."""
    from grpc_tools import protoc

    root = Path(__file__).resolve().parents[2]
    status = protoc.main(["protoc", f"-I{root}", f"--python_out={target}", f"--grpc_python_out={target}",
                          "cloud_core/engine/engine.proto"])
    if status:
        raise SystemExit(status)


if __name__ == "__main__":
    generate(Path(__file__).resolve().parents[2])
