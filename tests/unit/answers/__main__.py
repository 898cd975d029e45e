"""Print the outcome of each answer of Consul, by request."""

from supervisor.adapters.consul.endpoints import endpoint_of
from supervisor.core.requests import Release, Request
from tests.unit.answers.replies import REQUESTS, outcomes


def name_of(request: Request) -> str:
    """Return the class of a request, and which of two forms it has."""
    form = " of an empty value" if isinstance(request, Release) and not request.value else ""
    return f"{type(request).__name__}{form}"


def table() -> str:
    """Return a block for each request: its call, its rule, and each answer with its outcome."""
    blocks = []
    for request in REQUESTS:
        endpoint = endpoint_of(request)
        call = endpoint.encode(request)
        head = f"{name_of(request)}: {call.method} /v1/{call.path}, counted as {endpoint.operation}"
        lines = [f"  {answer:<32}{type(outcome).__name__}" for answer, outcome in outcomes(request).items()]
        blocks.append("\n".join([head, f"  needs {endpoint.rule(request)}", *lines]))
    return "\n\n".join(blocks)


if __name__ == "__main__":
    print(table())
