#!/bin/sh
# After installation or upgrade. Jobs that run go on with the program that they
# have: a training is not to be interrupted by an upgrade.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers trainerd.conf || true
fi
if command -v systemd-tmpfiles >/dev/null 2>&1; then
  systemd-tmpfiles --create trainerd.conf || true
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
