# Whoever holds the election `namenode`, as a service of its own in Consul: namenode-leader.service.consul,
# or /v1/health/service/namenode-leader?passing. Each node has this file among its Consul agent's (or
# registers it with `consul services register namenode.hcl`) and runs consul-supervisor with
# `http: {listen: 127.0.0.1:8555}`.
#
# Two services and not one with a tag: Consul has no tag that comes and goes with a check. So the
# application is one service, whose nodes are all well while it runs there, and its leader another,
# that passes on one node and is critical on the others. That is no fault: let no alarm look at it.

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
        # One answer that is not 200 is enough to be named no more, three in a row are needed to be named:
        # the old leader has gone from the answers before the new one is in them.
        success_before_passing = 3
        # No deregister_critical_service_after: a node may wait for months.
        # And no session may be bound to this check (service_checks): who does not hold would never get one.
      }
    ]
  }
]
