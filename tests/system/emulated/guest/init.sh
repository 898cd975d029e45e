#!/bin/sh
# The first process of a machine: it makes the machine usable, then carries out the lines that the host types on the
# console. Nothing here restarts the machine: a watchdog or a fence does.
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo -onlcr
for module in crc32c_generic libcrc32c crc16 mbcache jbd2 ext4 loop e1000 watchdog i6300esb softdog; do
    insmod "/modules/$module.ko"
done
mkdir /state /data
mount -o loop /state.disk /state
mount -o loop /data.disk /data
chmod 700 /state
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0 # what qemu's own network expects
ip link set eth1 up
ip address add "$(sed 's/.*lan=\([0-9.]*\).*/\1/' /proc/cmdline)/16" dev eth1 # the other machines
hostname "$(sed 's/.*node=\([a-z0-9-]*\).*/\1/' /proc/cmdline)"
echo "booted in $(cut -d' ' -f1 /proc/uptime) s"
# A subshell for each line, so that none ends this shell: then the kernel would panic.
while read -r line; do
    (eval "$line") </dev/null
done
