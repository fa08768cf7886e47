#!/bin/sh
# Installs svc @VERSION@:
#   sh install.sh --from URL-OR-FOLDER [--prefix FOLDER]
# It runs nothing of what it fetches before two checks: SHA256SUMS has the signature of the key below, and the package has the checksum
# in SHA256SUMS. Whoever can change this file can change the key: get it from a place that you trust.
set -eu

version='@VERSION@'
signer='@SIGNER@'
# What the signature is for (`ssh-keygen -Y sign -n`): one of the same key on other things does not pass.
namespace='svc-release'

fail() {
  echo "install.sh: $1" >&2
  exit "${2:-1}"
}

has() { command -v "$1" >/dev/null 2>&1; }

usage() {
  cat <<END
Usage: sh install.sh --from URL-OR-FOLDER [--prefix FOLDER]

Installs svc $version from a release at an address or in a folder, after checking its signature and checksum.

  --from URL-OR-FOLDER  where SHA256SUMS, SHA256SUMS.sig and the packages are
  --prefix FOLDER       where to install: FOLDER/bin/svc (default: ~/.local, for root /usr/local)
  --help                this text
END
}

parse() {
  from='' prefix=''
  while [ "$#" -gt 0 ]; do
    case $1 in
      --help)
        usage
        exit 0
        ;;
      --from | --prefix)
        [ -n "${2-}" ] || fail "$1 needs a value: see --help" 2
        if [ "$1" = --from ]; then from=${2%/}; else prefix=${2%/}; fi
        shift 2
        ;;
      *) fail "unknown argument '$1': see --help" 2 ;;
    esac
  done
  [ -n "$from" ] || fail '--from is missing: give the address or the folder of the release' 2
  if [ -z "$prefix" ]; then
    if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
  fi
  case $prefix in
    /*) ;;
    *) prefix=$(pwd)/$prefix ;;
  esac
}

# Whatever comes over the network is checked by its signature, so http:// is as good as https://.
fetch() {
  case $from in
    http://* | https://*)
      if has curl; then
        curl -fsSL --proto '=http,https' --proto-redir '=http,https' --max-filesize 209715200 -o "$work/$1" -- "$from/$1"
      elif has wget; then
        wget -q -O "$work/$1" -- "$from/$1"
      else
        fail 'neither curl nor wget was found: install one, or fetch the release yourself and give its folder with --from'
      fi
      ;;
    *://*) fail "--from '$from': only http, https and folders are read" 2 ;;
    *) cp -- "$from/$1" "$work/$1" ;;
  esac || fail "$1 could not be read from '$from': is it the folder of a signed release of svc?"
}

sha256_of() {
  if has sha256sum; then
    sha256sum <"$1"
  elif has shasum; then
    shasum -a 256 <"$1"
  else
    fail 'neither sha256sum nor shasum was found: the checksum cannot be checked, so nothing was installed'
  fi | cut -d ' ' -f 1
}

check_signature() {
  has ssh-keygen || fail 'ssh-keygen was not found, so the signature cannot be checked: install OpenSSH 8.1 or later (Debian: openssh-client)'
  printf 'svc namespaces="%s" %s\n' "$namespace" "$signer" >"$work/allowed_signers"
  ssh-keygen -Y verify -f "$work/allowed_signers" -I svc -n "$namespace" -s "$work/SHA256SUMS.sig" <"$work/SHA256SUMS" >"$work/reason" 2>&1 ||
    fail "SHA256SUMS does not have the signature of this release's key. Nothing was installed. $(head -n 1 "$work/reason")"
}

# One line of the signed list must name the file of this version, so an older release that is signed too does not pass.
check_sum() {
  expected=$(awk -v name="$1" '$2 == name { print $1 }' "$work/SHA256SUMS")
  [ -n "$expected" ] || fail "the signed SHA256SUMS has no $1: it belongs to another version than $version. Nothing was installed"
  actual=$(sha256_of "$work/$1")
  [ "$actual" = "$expected" ] || fail "$1 has another checksum than the signed one. Nothing was installed
  expected $expected
  found    $actual"
}

# The archive brings Node and the database's native part; the npm package is for all other machines.
choose_package() {
  archive="svc-$version-linux-x64.tar.gz"
  if [ "$(uname -s)" = Linux ] && [ "$(uname -m)" = x86_64 ] && ! ls /lib/ld-musl-* >/dev/null 2>&1; then
    way=archive package=$archive
    return
  fi
  way=npm package="svc-$version.tgz"
  if has node && has npm && node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 15) ? 0 : 1)'; then return; fi
  fail "on $(uname -s) $(uname -m) svc runs with the machine's own Node: install Node 22.15 or later with npm first"
}

# What this script may replace: nothing, or a link of its own into lib/svc-*.
check_place() {
  [ -e "$prefix/bin/svc" ] || [ -L "$prefix/bin/svc" ] || return 0
  case $(readlink "$prefix/bin/svc" || :) in
    ../lib/svc-*/bin/svc) [ "$way" = archive ] || fail "$prefix/bin/svc is from an archive: remove it, or give another --prefix" ;;
    ../lib/node_modules/svc/bin/svc) [ "$way" = npm ] || fail "$prefix/bin/svc is from npm: run npm uninstall --global svc, or give another --prefix" ;;
    *) fail "$prefix/bin/svc is there already and is not from this script: remove it, or give another --prefix" ;;
  esac
}

install_archive() {
  home="$prefix/lib/svc-$version"
  mkdir -p "$prefix/bin" "$prefix/lib"
  draft=$(mktemp -d "$prefix/lib/.svc-draft-XXXXXX")
  chmod 755 "$draft"
  tar -xzf "$work/$package" -C "$draft" --no-same-owner
  # Programs that run from the folder keep their files: it is moved away, not overwritten.
  if [ -e "$home" ]; then
    mv "$home" "$draft.old"
  fi
  mv "$draft/svc" "$home"
  rm -rf "$draft" "$draft.old"
  draft=''
  # A link is replaced by renaming another over it, so that at no time there is none.
  ln -s "../lib/svc-$version/bin/svc" "$prefix/bin/.svc-link-$$"
  mv -f "$prefix/bin/.svc-link-$$" "$prefix/bin/svc"
}

install_npm() {
  npm install --global --ignore-scripts --prefix "$prefix" "$work/$package"
}

tell() {
  echo "svc $version is installed: $prefix/bin/svc"
  for old in "$prefix"/lib/svc-*; do
    if [ -d "$old" ] && [ "$old" != "$prefix/lib/svc-$version" ]; then
      echo "  an earlier one is in $old; remove it once svc has been restarted (svc down --keep-sessions && svc up --detach)"
    fi
  done
  case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) echo "  $prefix/bin is not on your PATH" ;;
  esac
  echo "Start it with: svc up"
}

clean() {
  rm -rf "$work"
  if [ -n "$draft" ]; then rm -rf "$draft" "$draft.old"; fi
}

main() {
  parse "$@"
  choose_package
  check_place
  umask 022
  draft=''
  work=$(mktemp -d "${TMPDIR:-/tmp}/svc-install-XXXXXX")
  trap clean EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  fetch SHA256SUMS
  fetch SHA256SUMS.sig
  check_signature
  fetch "$package"
  check_sum "$package"
  "install_$way"
  tell
}

# The last line: what was cut off on its way here does nothing.
main "$@"
