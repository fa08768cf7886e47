#!/bin/sh
# Dev container feature: the tool runs it as root while it builds the image, with the options as variables. What installs svc is the
# release's own install script beside this file, which checks a signature and a checksum before it runs anything.
set -eu

fail() {
  echo "svc feature: $1" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
release=${RELEASE:-}
[ -n "$release" ] || fail "the option 'release' is missing: give the address of a signed release of svc in devcontainer.json"
[ "$(id -u)" -eq 0 ] || fail 'it has to run as root, as dev container tools do'

missing=''
has ssh-keygen || missing="$missing openssh-client"
has curl || has wget || missing="$missing curl ca-certificates"
if [ "${BUBBLEWRAP:-true}" = true ] && ! has bwrap; then missing="$missing bubblewrap"; fi
if [ -n "$missing" ]; then
  if has apt-get; then
    apt-get update
    # shellcheck disable=SC2086 # words of this file
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends $missing
    rm -rf /var/lib/apt/lists/*
  else
    fail "the image lacks$missing, and has no apt-get: install them before this feature"
  fi
fi

exec sh "$here/install_svc.sh" --from "$release" --prefix /usr/local
