/**
 * Ends, as root, every process of the container except the first, and prints how many are left, and how many are dead but not
 * yet reaped. The kernel holds a lock while it signals the processes (kill(2), pid -1), so none escapes by forking. Not
 * counted: those that the first process started as root to wait. A process cannot forge another field with its name: the kernel
 * writes the name on a line that begins with Name, with line breaks escaped.
 */
export const SWEEP_SCRIPT = `kill -KILL -1 2>/dev/null
left=0
dead=0
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
  case $state in
  '') continue ;;
  Z | X) dead=$((dead + 1)) && continue ;;
  esac
  [ "$parent:$owner" = 1:0 ] && continue
  left=$((left + 1))
done 2>/dev/null
echo "left $left dead $dead"
`;

/** What a sweep found after it. */
interface SweepCounts {
  /** Processes that may still run. */
  readonly left: number;
  /** Processes that do nothing any more, but count towards the container's limit until they are reaped. */
  readonly dead: number;
}

/** What the sweep printed; null if it did not finish. */
export function parseSweepCounts(stdout: string): SweepCounts | null {
  const found = /^left (\d+) dead (\d+)\n$/.exec(stdout);
  return found === null ? null : { left: Number(found[1]), dead: Number(found[2]) };
}

/**
 * Fails unless every parent of a path is a real folder. With a symbolic link there the engine, which reads as root, could
 * copy files that the step's user may not read.
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

/** Waits until the container is set up for steps, which its start reports with the sentinel. */
export const READY_SCRIPT = `n=0
until IFS= read -r given 2>/dev/null </run/svc/image-sentinel && [ "$given" = "$SVC_STEP_SENTINEL" ]; do
  n=$((n + 1))
  [ "$n" -lt 1200 ] || exit 1
  sleep 0.05 2>/dev/null || { sleep 1; n=$((n + 20)); }
done
echo ready
`;
