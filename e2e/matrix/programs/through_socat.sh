# For programs that know no proxy: `sh through_socat.sh HOST COMMAND...` runs the command with PORT set to a port of loopback
# that leads to port 443 of the host, through the relay.
set -eu
host=$1
shift
log=$(mktemp)
relay=${SVC_RELAY_URL#http://}
relay=${relay%/}
# Port 0 is any free one; socat names it in its log.
socat -d -d TCP-LISTEN:0,bind=127.0.0.1,fork "PROXY:${relay%:*}:$host:443,proxyport=${relay##*:}" 2>"$log" &
socat=$!
trap 'kill $socat; rm -f "$log"' EXIT
until grep -q 'listening on' "$log"; do
  kill -0 $socat
  sleep 0.05
done
PORT=$(sed -n 's/.*listening on .*://p' "$log")
export PORT
sh -euc "$*"
