"""The options by which each module reaches the daemon of its node."""


class ModuleDocFragment:
    """The options that all modules have."""

    DOCUMENTATION = r"""
options:
  executable:
    description: The command on the node, by its path or its name in C(PATH).
    type: str
    default: consul-supervisor
  config:
    description:
      - The configuration of the daemon, which names its control socket and Consul.
      - If it is not set, the command asks the usual socket, and Consul by C(/etc/consul-supervisor).
    type: path
  socket:
    description: The daemon's control socket, if it is neither the one that O(config) names nor the usual one.
    type: path
notes:
  - The user must be allowed to use the control socket, as C(root) and the members of C(control_group) are.
  - Requests to Consul have the token of O(config), or of C(CONSUL_HTTP_TOKEN) in C(environment) of the task.
"""
