#!/bin/sh
# Install the packages of Debian that build a package of Debian and check it.
exec "$(dirname "$0")/have_packages.sh" "these tests" <<END
/usr/bin/dpkg-buildpackage dpkg-dev
/usr/bin/dh debhelper
/usr/bin/dh_python3 dh-python
/usr/bin/lintian lintian
END
