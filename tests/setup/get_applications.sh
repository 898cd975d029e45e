#!/bin/sh
# Install the applications of Debian's packages that `make test-applications` fails over.
exec "$(dirname "$0")/have_packages.sh" "these tests" <<END
/usr/bin/pgrep procps
/usr/bin/pg_lsclusters postgresql
/usr/bin/psql postgresql-client
/usr/bin/activemq activemq
/usr/sbin/haproxy haproxy
/usr/bin/curl curl
/usr/bin/shellcheck shellcheck
/usr/sbin/ip iproute2
/usr/bin/arping iputils-arping
/usr/sbin/fence_dummy fence-agents
/usr/lib/ocf/resource.d/heartbeat/IPaddr2 resource-agents
END
