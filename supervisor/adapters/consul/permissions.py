"""The remedy of a refusal with 403: a permission that the token lacks, or the agent's own configuration.

Consul 1.8 only answers "Permission denied". So this module names the rule that the request needs, ready to be
pasted into a policy, or the token that Consul does not know. Newer versions name the permission, and then
Consul's text is enough. A remedy must never show a token.
"""

UNKNOWN_TOKEN = "ACL not found"  # Consul's text for a token that was deleted or never existed
PERMISSION_DENIED = "Permission denied"  # acl/errors.go; newer versions add what the ACL token lacks
NAMES_PERMISSION = "lacks permission '"  # in Consul's text since 1.12
_BY_AGENT = {
    '"ns" - Namespaces are': "remove consul.namespace (or CONSUL_NAMESPACE): this Consul has none",
    'artition"': "remove consul.partition (or CONSUL_PARTITION): this Consul has none",
    "Access is restricted": "the agent takes writes from some networks only: add the address that this "
    "machine asks from to http_config.allow_write_http_from in the agent's configuration",
    "Endpoint is blocked by agent configuration": "the agent answers nothing below some paths: take what "
    "the supervisor needs (/v1/session, /v1/kv, /v1/txn) out of http_config.block_endpoints in the agent's "
    "configuration",
}


def explain(said: str, token: str, rule: str) -> str:
    """Return Consul's text, with a remedy behind it unless the text names the permission.

    said: Consul's text.
    token: the name of the token in errors.
    rule: the rule of a policy that the request needs.
    """
    if NAMES_PERMISSION in said:
        return said
    by_token = f"{token} needs {rule}"
    if UNKNOWN_TOKEN in said:
        late = "or Consul has not loaded it yet, in its first seconds, or for 30 s on a client agent"
        by_token = f"Consul does not know {token}: it was deleted or mistyped, {late}"
    return f"{said}: {agent_remedy(said) or by_token}"


def agent_remedy(said: str) -> str:
    """Return the remedy when the agent itself refuses the request. Blank: another reason."""
    return next((remedy for words, remedy in _BY_AGENT.items() if words in said), "")
