#!/bin/sh
# Before removal, not before an upgrade: the jobs save, and stop. dpkg says
# "remove", rpm 0.
set -e
case "$1" in
remove | 0)
  if [ -d /run/systemd/system ]; then
    systemctl stop trainerd.target 'trainerd@*.service' || true
  fi
  ;;
esac
