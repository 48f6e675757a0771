"""The commands of the harness; each is imported only when it is called."""


def bench_harness(argv: list[str]) -> int:
    """Latency, fairness and memory of the delegate runtime."""
    from harness.bench import run

    return run(argv)


def bench_parser(argv: list[str]) -> int:
    """Cost per token of capturing delegate spans."""
    from harness.capture.bench import run

    return run(argv)


def eval_planner(argv: list[str]) -> int:
    """A planner against the labelled requests."""
    from harness.plan.evaluate import run

    return run(argv)


def serve(argv: list[str]) -> int:
    """The harness as a gRPC service, for front ends that are not ours."""
    from harness.service.commands import serve as run

    return run(argv)
