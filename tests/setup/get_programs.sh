#!/bin/sh
# Install the programs of Debian's packages that `make test-programs` runs beside ours: a browser, a load
# balancer, Prometheus.
exec "$(dirname "$0")/have_packages.sh" "these tests" <<END
/usr/bin/chromium chromium
/usr/sbin/haproxy haproxy
/usr/bin/promtool prometheus
/usr/bin/systemd-analyze systemd
END
