#!/usr/bin/python
"""Tell what the daemon of a node has a part in."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

DOCUMENTATION = r"""
module: consul_supervisor_info
short_description: Tell the roles of a node, the leaders, the fencing tokens and the version
version_added: 0.2.0
description:
  - Asks the daemon of the node, as C(consul-supervisor status --json) does.
  - A node without a running daemon is no failure, and has RV(running=false).
author: The consul-supervisor authors (@consul-supervisor)
extends_documentation_fragment:
  - consul_supervisor.consul_supervisor.daemon
attributes:
  check_mode:
    description: Nothing is changed.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
seealso:
  - module: consul_supervisor.consul_supervisor.consul_supervisor_drain
"""

EXAMPLES = r"""
- name: Ask the daemon
  consul_supervisor.consul_supervisor.consul_supervisor_info:
  register: supervisor

- name: Act on the leader alone
  ansible.builtin.debug:
    msg: "leads, with the fencing token {{ supervisor.tokens.app }}"
  when: supervisor.roles.app | default('') == 'holding'
"""

RETURN = r"""
running:
  description: Whether a daemon answers.
  type: bool
  returned: always
  sample: true
version:
  description: The version of the daemon that runs, or else of the installed command.
  type: str
  returned: always
  sample: 0.2.0
healthy:
  description: Whether all is well.
  type: bool
  returned: always
  sample: true
troubles:
  description: Why not.
  type: list
  elements: str
  returned: always
  sample: []
roles:
  description: The role of this node in each election and semaphore, by its name.
  type: dict
  returned: always
  sample: {app: holding, rebuild: waiting}
leaders:
  description: The leader's value of each election, by its name, and null if nobody leads or it is not known.
  type: dict
  returned: always
  sample: {app: node1}
tokens:
  description: The fencing token of each election and semaphore that this node holds, by its name.
  type: dict
  returned: always
  sample: {app: 159}
paused:
  description: The elections and semaphores that are paused on this node.
  type: list
  elements: str
  returned: always
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402
from ansible_collections.consul_supervisor.consul_supervisor.plugins.module_utils.daemon import (  # noqa: E402
    OPTIONS,
    Daemon,
)


def main():
    """Run the module."""
    module = AnsibleModule(argument_spec=OPTIONS, supports_check_mode=True)
    status = Daemon(module).status(down=True)
    if status is None:
        _code, out, _error = module.run_command([module.params["executable"], "version"])
        version = out.split()[-1] if out.split() else ""
        status = {"items": [], "healthy": False, "troubles": [], "daemon": {"version": version}}
        running = False
    else:
        running = True
    items = status["items"]
    module.exit_json(
        changed=False,
        running=running,
        version=status["daemon"]["version"],
        healthy=status["healthy"],
        troubles=status["troubles"],
        roles={item["name"]: item["role"] for item in items},
        leaders={item["name"]: item["leader"] for item in items if item["kind"] == "election"},
        tokens={item["name"]: item["fencing_token"] for item in items if item["fencing_token"]},
        paused=sorted(item["name"] for item in items if item["paused"]),
    )


if __name__ == "__main__":
    main()
