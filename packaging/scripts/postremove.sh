#!/bin/sh
# After removal. Configs, logdirs, the user, and which jobs are enabled stay: they
# are the user's work. dpkg's purge forgets which jobs are enabled.
set -e
if [ "$1" = purge ]; then
  rm -f /etc/systemd/system/*.wants/trainerd@*.service
  rmdir /etc/systemd/system/trainerd.target.wants 2>/dev/null || true
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
