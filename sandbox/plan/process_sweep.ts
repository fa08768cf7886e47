/**
 * Ends every process of the container but its first one, as root, and prints how many are left. The kernel goes through the
 * processes under a lock (kill(2), pid -1), so none escapes by forking. Not counted: what is dead and not yet reaped, and what
 * the first process itself started as root, which is what it waits with. A process's own name cannot pass for another field:
 * the kernel writes it on a line that begins with Name, line breaks escaped.
 */
export const SWEEP_SCRIPT = `kill -KILL -1 2>/dev/null
left=0
for folder in /proc/[0-9]*; do
  pid=\${folder#/proc/} state= parent= owner=
  [ "$pid" = 1 ] && continue
  [ "$pid" = "$$" ] && continue
  while read -r key value rest; do
    case $key in
    State:) state=$value ;;
    PPid:) parent=$value ;;
    Uid:) owner=$value ;;
    esac
  done 2>/dev/null <"$folder/status"
  case $state in '' | Z | X) continue ;; esac
  [ "$parent:$owner" = 1:0 ] && continue
  left=$((left + 1))
done 2>/dev/null
echo "left $left"
`;

/** How many processes the sweep left; null when it did not come to its end. */
export function parseSweepCount(stdout: string): number | null {
  const found = /^left (\d+)\n$/.exec(stdout);
  return found === null ? null : Number(found[1]);
}

/**
 * Fails unless every folder on the way to a path is a folder itself. A symbolic link there could lead the engine, which reads
 * as root, to what the step's user may not see.
 */
export const PLAIN_PATH_SCRIPT = `path=
IFS=/
set -f
for part in \${1#/}; do
  path=$path/$part
  if [ -L "$path" ]; then echo link; exit 0; fi
  if [ ! -e "$path" ]; then echo missing; exit 0; fi
done
echo plain
`;

/** Waits until the container is set up for steps, which its start says with the sentinel. */
export const READY_SCRIPT = `n=0
until IFS= read -r given 2>/dev/null </run/svc/image-sentinel && [ "$given" = "$SVC_STEP_SENTINEL" ]; do
  n=$((n + 1))
  [ "$n" -lt 1200 ] || exit 1
  sleep 0.05 2>/dev/null || { sleep 1; n=$((n + 20)); }
done
echo ready
`;
