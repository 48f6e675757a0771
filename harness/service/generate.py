"""Makes delegation_pb2.py and delegation_pb2_grpc.py from delegation.proto:  python -m harness.service.generate

Needs grpcio-tools (kuksa-client brings it). The generated files are committed; a test checks that they match the proto.
"""
from pathlib import Path


def generate(target: Path) -> None:
    """Write both files below `target` (the folder that holds `harness/`)."""
    from grpc_tools import protoc

    root = Path(__file__).resolve().parents[2]
    status = protoc.main(["protoc", f"-I{root}", f"--python_out={target}", f"--grpc_python_out={target}",
                          "harness/service/delegation.proto"])
    if status:
        raise SystemExit(status)


if __name__ == "__main__":
    generate(Path(__file__).resolve().parents[2])
