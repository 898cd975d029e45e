"""What would mend a refusal with 403: a right that the token lacks, or the agent's own configuration.

Consul 1.8 says "Permission denied" and no more. This names the rule that the request needed, to be
pasted into a policy, or whose token Consul did not know. Newer versions name the permission, and then
their words are enough. It must never show a token.
"""

UNKNOWN_TOKEN = "ACL not found"  # Consul's words for a token that was deleted, or never was
PERMISSION_DENIED = "Permission denied"  # Consul's words for a right that the token lacks
NAMES_PERMISSION = "lacks permission '"  # Consul's words since 1.12
_BY_AGENT = {
    "Access is restricted": "the agent takes writes from some networks only: add the address that this "
    "machine asks from to http_config.allow_write_http_from in the agent's configuration",
    "Endpoint is blocked by agent configuration": "the agent answers nothing below some paths: take what "
    "the supervisor needs (/v1/session, /v1/kv, /v1/txn) out of http_config.block_endpoints in the agent's "
    "configuration",
}


def explain(said: str, token: str, rule: str) -> str:
    """Consul's words, and what would mend them where they do not say so. ``token`` is what the token is
    called, ``rule`` the rule of a policy that the request needs."""
    if NAMES_PERMISSION in said:
        return said
    return f"{said}: {agent_remedy(said) or _by_token(said, token, rule)}"


def agent_remedy(said: str) -> str:
    """The remedy where the agent's own configuration refuses, whatever the token may do; else blank."""
    return next((remedy for words, remedy in _BY_AGENT.items() if words in said), "")


def unknown_token(token: str) -> str:
    """Of a token that Consul does not know."""
    return f"Consul does not know {token}: it was deleted or mistyped"


def _by_token(said: str, token: str, rule: str) -> str:
    return unknown_token(token) if UNKNOWN_TOKEN in said else f"{token} needs {rule}"
