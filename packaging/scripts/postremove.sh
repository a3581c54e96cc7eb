#!/bin/sh
# After removal. Configs, logdirs and the user stay: they are the user's work.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
