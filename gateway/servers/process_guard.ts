import { type ChildProcess, spawn } from 'node:child_process';
import { podmanEnvironmentOf } from '../../sandbox/engine/engine_cli.ts';
import { RUN_ID_VARIABLE } from './launch_environment.ts';

/**
 * Reads the process groups from stdin and ends them when stdin closes, which happens when the gateway ends in any way.
 * Processes that left their group are found by the mark in their environment, containers by their label.
 */
const GUARD_SCRIPT = `mark=$1
groups=' ' engine=
while read -r word value; do
  case $word in
  add) groups="$groups$value " ;;
  engine) engine=$value ;;
  del)
    kept=' '
    for group in $groups; do [ "$group" = "$value" ] || kept="$kept$group "; done
    groups=$kept
    ;;
  esac
done
[ "$groups$engine" = ' ' ] && exit 0
for group in $groups; do kill -s TERM -- "-$group"; done
case $engine in
podman:*) set -- podman ;;
*) set -- docker --host "$engine" ;;
esac
if [ "$engine" ]; then
  boxes=$("$@" ps -q --filter "label=svc.mcp.gateway=$mark")
  [ "$boxes" ] && "$@" kill $boxes
fi
[ "$groups" = ' ' ] && exit 0
sleep 1
for group in $groups; do kill -s KILL -- "-$group"; done
for found in $(grep -ls "${RUN_ID_VARIABLE}=$mark" /proc/[0-9]*/environ); do
  pid=\${found#/proc/}
  kill -s KILL "\${pid%/environ}"
done
`;

/** The label of a gateway's containers. */
export const GATEWAY_LABEL = 'svc.mcp.gateway';

/** A small shell process that outlives the gateway to end everything that the gateway started. */
export class ProcessGuard {
  readonly #mark: string;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #groups = new Set<number>();
  #engine: string | null = null;
  #shell: ChildProcess | null = null;
  #stopped = false;

  /** `mark` is the prefix of the run ids of all servers of this gateway. */
  constructor(mark: string, env: Readonly<Record<string, string | undefined>>) {
    this.#mark = mark;
    this.#env = env;
  }

  add(pgid: number): void {
    this.#groups.add(pgid);
    this.#say(`add ${pgid}`);
  }

  remove(pgid: number): void {
    this.#groups.delete(pgid);
    this.#say(`del ${pgid}`);
  }

  /** The engine where containers are ended too. */
  watchEngine(endpoint: string): void {
    if (this.#engine === endpoint || !/^(?:unix:\/\/|podman:)[\w./-]+$/.test(endpoint)) return;
    this.#engine = endpoint;
    this.#say(`engine ${endpoint}`);
  }

  /** All groups were removed: the shell exits without ending anything. */
  stop(): void {
    this.#stopped = true;
    this.#shell?.stdin?.end();
  }

  #say(line: string): void {
    if (this.#shell === null) this.#start();
    else this.#shell.stdin?.write(`${line}\n`);
  }

  /** Started on first use, and restarted if it was ended. */
  #start(): void {
    const { PATH = '/usr/bin:/bin', HOME = '/nonexistent' } = this.#env;
    const shell = spawn('/bin/sh', ['-c', GUARD_SCRIPT, 'svc-mcp-guard', this.#mark], {
      stdio: ['pipe', 'ignore', 'ignore'],
      // In its own session: Ctrl-C must not end the guard together with the gateway.
      detached: true,
      // The engine may become known later.
      env: { ...podmanEnvironmentOf(this.#env), PATH, HOME },
    });
    this.#shell = shell;
    shell.unref();
    shell.stdin.on('error', () => undefined);
    const gone = (): void => {
      if (this.#shell !== shell) return;
      this.#shell = null;
      if (!this.#stopped && this.#groups.size > 0) setTimeout(() => this.#restart(), RESTART_MS).unref();
    };
    shell.on('error', gone);
    shell.on('exit', gone);
    const engine = this.#engine === null ? [] : [`engine ${this.#engine}`];
    const lines = [...engine, ...Array.from(this.#groups, (pgid) => `add ${pgid}`)];
    shell.stdin.write(lines.map((line) => `${line}\n`).join(''));
  }

  #restart(): void {
    if (this.#shell === null && !this.#stopped && this.#groups.size > 0) this.#start();
  }
}

const RESTART_MS = 500;
