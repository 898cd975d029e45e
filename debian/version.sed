# From the version of Python to that of Debian: 1.0rc1 and 1.0.dev2 come before 1.0, so Debian writes 1.0~rc1 and 1.0~dev2.
# Behind the + stands the commit. To Debian 1.0~a1 and 1.0~b1 come before 1.0~dev2, so tag no alphas and betas.
:next
s/^([^+]*[0-9])\.?(a|b|rc|dev)([0-9])/\1~\2\3/
t next
