# shellcheck shell=sh
# Run once by the Dockerfile, as root, on any base with a shell: adds what the contract requires and the base lacks.
set -eu
agent=$1
wanted=${2:-}
mcp=${3:-yes}
case $agent in '' | -* | *[!a-z0-9_-]*) echo 'AGENT_USER must be a user name of lower-case letters, digits, - and _.' >&2; exit 1 ;; esac
[ "$agent" != root ] || { echo 'AGENT_USER must not be root.' >&2; exit 1; }
case $wanted in 0* | *[!0-9]*) echo 'AGENT_UID must be a number above 0.' >&2; exit 1 ;; esac

# has FILE FIELD VALUE: true if a line of /etc/passwd or /etc/group has that value in that field.
has() {
  while IFS=: read -r name _ number _; do
    case $2 in name) value=$name ;; *) value=$number ;; esac
    [ "$value" != "$3" ] || return 0
  done <"$1"
  return 1
}

[ -e /etc/passwd ] || echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
[ -e /etc/group ] || echo 'root:x:0:' >/etc/group
if ! has /etc/passwd name "$agent"; then
  # A requested number is used even if the base already has it: it owns the files that will be mounted.
  id=${wanted:-1000}
  while [ -z "$wanted" ] && { has /etc/passwd id "$id" || has /etc/group id "$id"; }; do id=$((id + 1)); done
  has /etc/group name "$agent" || echo "$agent:x:$id:" >>/etc/group
  while IFS=: read -r name _ number _; do [ "$name" != "$agent" ] || id_of_group=$number; done </etc/group
  shell=/bin/sh
  [ ! -x /bin/bash ] || shell=/bin/bash
  echo "$agent:x:$id:$id_of_group:agent:/home/$agent:$shell" >>/etc/passwd
  [ ! -e /etc/shadow ] || echo "$agent:!:20000:0:99999:7:::" >>/etc/shadow
fi
while IFS=: read -r name _ uid gid _ home _; do
  [ "$name" = "$agent" ] || continue
  mkdir -p "$home/workspace"
  chown "$uid:$gid" "$home" "$home/workspace"
done </etc/passwd

# A trust store for a base without ca-certificates: behind the proxy, the session's CA is enough.
[ -d /etc/ssl/certs ] || [ -d /etc/pki/ca-trust/source/anchors ] || mkdir -p /etc/ssl/certs
mkdir -p /etc/svc/proxy /run
chmod 0755 /etc/svc /etc/svc/proxy /usr/local/bin/svc-install-proxy-ca /usr/local/bin/svc-run-with-proxy-ca /usr/local/bin/svc-run-step
chmod 0755 /usr/local/share/svc
chmod 0644 /usr/local/share/svc/*
chmod -R go-w,a+rX /usr/local/lib/svc-mcp
chmod 0755 /usr/local/lib/svc-mcp/svc-mcp
# Removes an svc-mcp that does not run; it is optional.
rm -f /usr/local/bin/svc-mcp
if [ "$mcp" = no ]; then
  rm -rf /usr/local/lib/svc-mcp
elif said=$(/usr/local/lib/svc-mcp/svc-mcp --check 2>&1); then
  ln -s ../lib/svc-mcp/svc-mcp /usr/local/bin/svc-mcp
else
  echo "svc-mcp is left out: $said" >&2
fi
# The build fails here unless the image meets the contract.
/usr/local/bin/svc-install-proxy-ca --check
