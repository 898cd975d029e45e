#!/bin/sh
# The program of a fence: `fence PORT TARGET` asks the device at this port of the host to switch a machine off, and ends
# with 0 once the device says that the machine is off.
[ "$(echo "$2" | nc 10.0.2.2 "$1")" = off ]
