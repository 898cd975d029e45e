# The holder of the election `namenode` as a service of its own in Consul: namenode-leader.service.consul, or
# /v1/health/service/namenode-leader?passing. Each node has this file in its Consul agent's configuration (or
# registers it with `consul services register namenode.hcl`), and runs consul-supervisor with
# `http: {listen: 127.0.0.1:8555}`.
#
# These are two services, and not one with a tag, because Consul has no tag that comes and goes with a check.
# The application is one service, which passes on each node where it runs. Its leader is another service,
# which passes on one node and is critical on the others. That is no fault: do not alarm on it.

services = [
  {
    name = "namenode"
    port = 8020

    checks = [
      {
        name     = "namenode accepts connections"
        tcp      = "127.0.0.1:8020"
        interval = "5s"
        timeout  = "1s"
      }
    ]
  },
  {
    name = "namenode-leader"
    port = 8020

    checks = [
      {
        name     = "consul-supervisor holds namenode"
        http     = "http://127.0.0.1:8555/leader/namenode"
        interval = "1s"
        timeout  = "400ms"
        # One answer other than 200 removes a node from Consul's answers, and three answers 200 in a row add it.
        # So the old leader is gone from the answers before the new leader is in them.
        success_before_passing = 3
        # Do not set deregister_critical_service_after, because a node may wait for months.
        # Bind no session to this check (service_checks): a node that does not hold would never get a session.
      }
    ]
  }
]
