#!/usr/bin/python
"""Wait until an election or semaphore is held or free."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

DOCUMENTATION = r"""
module: consul_supervisor_wait
short_description: Wait until an election or semaphore is held or free
version_added: 0.2.0
description:
  - Waits as C(consul-supervisor wait) does, and changes nothing.
author: The consul-supervisor authors (@consul-supervisor)
extends_documentation_fragment:
  - consul_supervisor.consul_supervisor.daemon
attributes:
  check_mode:
    description: Looks once, and another state is no failure, because it may come of tasks that were skipped.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
options:
  name:
    description: The election or semaphore.
    type: str
    required: true
  state:
    description:
      - With V(holding) this node holds it, and its hooks of on_acquire have finished.
      - With V(leader) a node leads the election.
      - With V(free) nobody holds the key, or a slot of the semaphore is not taken.
    type: str
    choices: [holding, leader, free]
    default: leader
  timeout:
    description: How long to wait, such as V(2m), a day at most. With V(0s) the module looks once.
    type: str
    default: 60s
seealso:
  - module: consul_supervisor.consul_supervisor.consul_supervisor_drain
"""

EXAMPLES = r"""
- name: Go on once a node leads
  consul_supervisor.consul_supervisor.consul_supervisor_wait:
    name: app
    state: leader
    timeout: 2m
"""

RETURN = r"""
met:
  description: Whether the election or semaphore is in this state. It is always, except in check mode.
  type: bool
  returned: success
  sample: true
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402
from ansible_collections.consul_supervisor.consul_supervisor.plugins.module_utils.daemon import (  # noqa: E402
    DONE,
    NEGATIVE,
    OPTIONS,
    Daemon,
)


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            **OPTIONS,
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["holding", "leader", "free"], "default": "leader"},
            "timeout": {"type": "str", "default": "60s"},
        },
        supports_check_mode=True,
    )
    given, looks_once = module.params, module.check_mode
    timeout = "0s" if looks_once else given["timeout"]
    code, _out, _error = Daemon(module).run(
        *("wait", given["name"], f"--for={given['state']}", f"--timeout={timeout}"),
        allowed=(DONE, NEGATIVE) if looks_once else (DONE,),
    )
    module.exit_json(changed=False, met=code == DONE)


if __name__ == "__main__":
    main()
