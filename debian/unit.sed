# Makes the package's unit of systemd/consul-supervisor.service.
s,/opt/consul-supervisor/bin/consul-supervisor,/usr/bin/consul-supervisor,
1,2c\
# The unit of Debian's package consul-supervisor, with its configuration in /etc/consul-supervisor.\
# Change what your site needs in a drop-in: systemctl edit consul-supervisor
s,^# (systemd/\*.conf are examples,# (/usr/share/doc/consul-supervisor/systemd/*.conf are examples,
/^Description=/a\
Documentation=file:///usr/share/doc/consul-supervisor/README.md\
# Without a configuration a start does nothing, unless an earlier process may have left a lock on record.\
ConditionPathExistsGlob=|/etc/consul-supervisor/*.y*ml\
ConditionPathExistsGlob=|/var/lib/consul-supervisor/*\
ConditionPathExistsGlob=|/run/consul-supervisor/state_dir
