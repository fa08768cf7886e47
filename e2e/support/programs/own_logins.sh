#!/bin/sh
# Runs a command with a home and a session bus of its own, at the paths of the user's: its mounts are in no other process. `logins` has
# what lies in the home, and the value that the keyring has. The command's D-Bus and its keyring end with `bus.pid`.
set -eu
logins=$1
shift
user=$(id -u)
home=$(getent passwd "$user" | cut -d: -f6)
mount -t tmpfs tmpfs /run/user
mkdir -m 700 /run/user/changed /run/user/work "/run/user/$user"
mount -t overlay overlay -o "lowerdir=$home,upperdir=/run/user/changed,workdir=/run/user/work" "$home"
rm -rf "$home/.aws" "$home/.config/gh" "$home/.local/share/keyrings"
mkdir -p "$home/.config"
cp -R "$logins/aws" "$home/.aws"
cp -R "$logins/gh" "$home/.config/gh"

export HOME="$home" XDG_RUNTIME_DIR="/run/user/$user" DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/$user/bus"
dbus-daemon --session --nopidfile --fork --address="$DBUS_SESSION_BUS_ADDRESS" --print-pid=3 3>"$logins/bus.pid"
printf 'login password' | gnome-keyring-daemon --unlock --components=secrets --daemonize >/dev/null
secret-tool store --label=demo service demo account ci <"$logins/keyring"
# What svc is started with is not what its programs get.
unset XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS
exec "$@"
