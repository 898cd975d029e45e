"""The leader of an election, as the control node sees it in Consul."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

DOCUMENTATION = r"""
name: leader
short_description: The leader of an election, by Consul
version_added: 0.2.0
description:
  - Asks Consul, by C(consul-supervisor leader) on the control node. No daemon has to run there.
  - Returns the value of the leader of each election, and null if nobody leads.
  - Only the configuration and the C(CONSUL_) variables of the control node count, as they are where Ansible
    was started. C(environment) of a play or task, and the host that is managed, change nothing.
author: The consul-supervisor authors (@consul-supervisor)
options:
  _terms:
    description: Elections of the configuration, or keys with O(key=true).
    type: list
    elements: str
    required: true
  key:
    description:
      - Whether the terms are keys in Consul.
      - Then no configuration is needed, and C(CONSUL_) variables of the control node say how to reach Consul.
    type: bool
    default: false
  config:
    description: The configuration on the control node.
    type: path
  executable:
    description: The command on the control node.
    type: str
    default: consul-supervisor
"""

EXAMPLES = r"""
- name: Show who leads
  ansible.builtin.debug:
    msg: "{{ lookup('consul_supervisor.consul_supervisor.leader', 'service/app/leader', key=true) }}"
"""

RETURN = r"""
_raw:
  description: The value of each leader.
  type: list
  elements: str
"""

import subprocess  # noqa: E402

from ansible.errors import AnsibleError  # noqa: E402
from ansible.plugins.lookup import LookupBase  # noqa: E402

NOBODY = 1
ANSWER_S = 30


class LookupModule(LookupBase):
    """The lookup."""

    def run(self, terms, variables=None, **kwargs):
        """Return the value of each leader, and None where nobody leads."""
        self.set_options(var_options=variables, direct=kwargs)
        return [self._leader(term) for term in terms]

    def _leader(self, term):
        config = self.get_option("config")
        asked = ["--key", term] if self.get_option("key") else [term]
        argv = [self.get_option("executable"), "leader", *asked, *(["--config", config] if config else [])]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=ANSWER_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise AnsibleError(f"cannot ask for the leader of {term}: {error}") from error
        if done.returncode not in (0, NOBODY):
            raise AnsibleError(f"cannot tell the leader of {term}: {done.stderr.strip()}")
        return None if done.returncode == NOBODY else done.stdout.removesuffix("\n")
