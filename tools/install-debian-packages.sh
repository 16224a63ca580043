#!/bin/sh
# Installs the Debian packages that tests need; quick if they are installed. If it cannot install them, it names
# the missing ones and exits with 0: the tests that need them are then skipped with the reason.
set -eu

packages="g++ iproute2 chromium openssh-server openmpi-bin rsync"

missing=""
for package in $packages; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2> /dev/null || true)
    [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "not installed, because that needs root and apt-get:$missing" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet=2
# shellcheck disable=SC2086  # a list of words
apt-get install --quiet=2 --yes --no-install-recommends -o DPkg::Lock::Timeout=300 $missing
