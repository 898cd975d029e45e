#!/bin/sh
# Install the programs of Debian's packages that `make test-programs` and `make test-page` run beside ours: a browser, a
# load balancer, Prometheus and Alertmanager, shells with their completion, readers of man pages, clocks that are off, Puppet.
exec "$(dirname "$0")/have_packages.sh" "these tests" <<END
/usr/bin/chromium chromium
/usr/sbin/haproxy haproxy
/usr/bin/promtool prometheus
/usr/bin/prometheus-alertmanager prometheus-alertmanager
/usr/bin/systemd-analyze systemd
/usr/bin/zsh zsh
/usr/bin/fish fish
/usr/share/bash-completion/helpers bash-completion
/usr/bin/groff groff
/usr/bin/man man-db
/usr/bin/mandoc mandoc
/usr/bin/faketime faketime
/usr/bin/puppet puppet-agent
END
