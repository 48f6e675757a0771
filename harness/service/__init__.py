"""The harness as a gRPC service: `server` and `client`. Needs grpcio; nothing here is imported by `import harness`."""
