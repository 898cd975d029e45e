#!/usr/bin/python
"""Take a node out of its elections and semaphores, or let it contend again."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

DOCUMENTATION = r"""
module: consul_supervisor_drain
short_description: Take a node out of all elections and semaphores, or back
version_added: 0.2.0
description:
  - Before a patch it pauses everything on the node and hands over what the node holds, as
    C(consul-supervisor drain) does.
  - Afterwards it ends the pause, as C(consul-supervisor undrain) does.
  - The pause lasts over restarts and reboots of the node.
author: The consul-supervisor authors (@consul-supervisor)
extends_documentation_fragment:
  - consul_supervisor.consul_supervisor.daemon
attributes:
  check_mode:
    description: Changes nothing, and says what would be done, or fails where that would be refused.
    support: full
  diff_mode:
    description: Shows what the node holds and what is paused, before and after.
    support: full
options:
  state:
    description:
      - With V(drained) the node holds nothing, and contends for nothing.
      - With V(contending) no drain and no rest after a step-down goes on.
      - Who was paused by somebody else stays so.
    type: str
    choices: [drained, contending]
    default: drained
  reason:
    description: Why, in one line, for the log, the status, the events and the hooks of a step-down.
    type: str
  force:
    description:
      - With O(state=drained), do not ask Consul whether another node takes part in what this node holds.
    type: bool
    default: false
  wait:
    description:
      - With O(state=contending), return once the node is healthy and waits or holds everywhere.
      - Fail if it does not within this time, such as V(2m).
      - A daemon that is not up yet is waited for as well.
    type: str
seealso:
  - module: consul_supervisor.consul_supervisor.consul_supervisor_wait
  - module: consul_supervisor.consul_supervisor.consul_supervisor_info
"""

EXAMPLES = r"""
- name: Hand over everything
  consul_supervisor.consul_supervisor.consul_supervisor_drain:
    reason: kernel update

- name: Contend again
  consul_supervisor.consul_supervisor.consul_supervisor_drain:
    state: contending
    wait: 2m
"""

RETURN = r"""
holds:
  description: The elections and semaphores that the node holds now.
  type: list
  elements: str
  returned: always
  sample: []
paused:
  description: The elections and semaphores that are paused now.
  type: list
  elements: str
  returned: always
  sample: [app, rebuild]
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402
from ansible_collections.consul_supervisor.consul_supervisor.plugins.module_utils.daemon import (  # noqa: E402
    HOLDS,
    OPTIONS,
    Daemon,
    contenders,
)


def shown(status):
    """Return what the module reports of this status. None: no daemon answers."""
    items = contenders(status) if status else {}
    return {
        "holds": sorted(name for name, item in items.items() if item["role"] in HOLDS),
        "paused": sorted(name for name, item in items.items() if item["paused"]),
    }


def is_done(status, wanted, waits):
    """Return whether the node is in the wanted state. ``waits``: also whether it is settled there."""
    if status is None:
        return False
    items = contenders(status).values()
    if wanted == "drained":
        lasts = all(item["paused"] and item.get("paused_until") is None for item in items)
        return lasts and all(item["role"] not in HOLDS for item in items)
    if any(item.get("drained", item["paused"]) or item["role"] == "resting" for item in items):
        return False  # who was paused by somebody else stays so
    settled = ("holding", "paused")
    ready = all(item["role"] in settled or item["role"] == "waiting" and item["session"] for item in items)
    return not waits or ready and status["healthy"]


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            **OPTIONS,
            "state": {"type": "str", "choices": ["drained", "contending"], "default": "drained"},
            "reason": {"type": "str"},
            "force": {"type": "bool", "default": False},
            "wait": {"type": "str"},
        },
        supports_check_mode=True,
    )
    daemon, given = Daemon(module), module.params
    wanted, waits = given["state"], given["wait"] is not None
    before = daemon.status(down=wanted == "contending" and waits)
    was = shown(before)
    if is_done(before, wanted, waits):
        module.exit_json(changed=False, **was)
    changed = before is None or not is_done(before, wanted, waits=False)
    more = ["--quiet"] + ([f"--reason={given['reason']}"] if given["reason"] else [])
    if wanted == "drained":
        argv = ["drain", *more, *(["--force"] if given["force"] else [])]
    else:
        argv = ["undrain", *more, *([f"--wait={given['wait']}"] if waits else [])]
    daemon.run(*argv, *(["--dry-run"] if module.check_mode else []))
    if module.check_mode:
        paused = sorted(contenders(before)) if before and wanted == "drained" else []
        now = {"holds": [] if wanted == "drained" else was["holds"], "paused": paused}
    else:
        now = shown(daemon.status())
    module.exit_json(changed=changed, diff={"before": was, "after": now}, **now)


if __name__ == "__main__":
    main()
