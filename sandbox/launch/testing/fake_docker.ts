import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const IMAGE_ID = `sha256:${'a'.repeat(64)}`;
export const CONTAINER_ID = 'c'.repeat(64);

/** One use of the program. */
interface DockerUse {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * A `docker` or `podman` program in a folder of its own: it writes down how it was called, and runs the shell script given for the
 * subcommand, else does nothing. It starts no other program, which would take most of the time of a test. Its engine is a socket
 * that anybody may connect to.
 */
export class FakeDocker {
  readonly folder = mkdtempSync(join(tmpdir(), 'svc-docker-'));
  readonly socket = join(this.folder, 'docker.sock');
  readonly endpoint = `unix://${this.socket}`;
  #engine: Server | null = null;

  constructor(program: 'docker' | 'podman' = 'docker') {
    const script = `#!/bin/sh
{ printf '%s\\0' "$@" ''; export -p; } > "${this.folder}/use.$$"
echo $$ >> "${this.folder}/uses"
while [ "$1" = --host ] || [ "$1" = --config ]; do shift 2; done
[ -r "${this.folder}/$1.sh" ] || exit 0
. "${this.folder}/$1.sh"
`;
    writeFileSync(join(this.folder, program), script, { mode: 0o755 });
  }

  /** What a subcommand (`create`, `container`, `start` ...) does. */
  on(subcommand: string, script: string): this {
    writeFileSync(join(this.folder, `${subcommand}.sh`), script);
    return this;
  }

  listen(): Promise<void> {
    const engine = createServer((socket) => socket.destroy());
    this.#engine = engine;
    return new Promise((resolve) => {
      engine.listen(this.socket, () => resolve());
    });
  }

  async remove(): Promise<void> {
    const engine = this.#engine;
    if (engine !== null) await new Promise((resolve) => engine.close(resolve));
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** The environment of a caller whose engine this is. */
  env(more: Readonly<Record<string, string>> = {}): Record<string, string> {
    return { PATH: `${this.folder}:/usr/bin:/bin`, HOME: this.folder, DOCKER_HOST: this.endpoint, ...more };
  }

  uses(): readonly DockerUse[] {
    const pids = this.#read('uses').split('\n').slice(0, -1);
    return pids.map((pid) => {
      const [, args = '', exported = ''] = /^(.*\0)?\0(.*)$/s.exec(this.#read(`use.${pid}`)) ?? [];
      return { args: args.split('\0').slice(0, -1), env: exportedVariables(exported) };
    });
  }

  /** The uses without the words that bind them to the engine. */
  commands(): readonly (readonly string[])[] {
    return this.uses().map(({ args }) => withoutBinding(args));
  }

  #read(name: string): string {
    try {
      return readFileSync(join(this.folder, name), 'utf8');
    } catch {
      return '';
    }
  }
}

/** What `export -p` prints: each value is in single quotes, and a single quote of its own is in double ones. */
function exportedVariables(text: string): Record<string, string> {
  const found = text.matchAll(/^export (\w+)=((?:'[^']*'|"[^"]*")*)$/gm);
  return Object.fromEntries(
    [...found].map(([, name = '', value = '']) => [name, value.replaceAll(/'([^']*)'|"([^"]*)"/g, '$1$2')]),
  );
}

function withoutBinding(args: readonly string[]): readonly string[] {
  const known = new Set(['--host', '--config']);
  let from = 0;
  while (known.has(args[from] ?? '')) from += 2;
  return args.slice(from);
}

/** The scripts of an engine on which a container starts and ends as it should; its program prints `hello`. */
export function scriptWorkingEngine(docker: FakeDocker, exitCode = 0): FakeDocker {
  const image = { Id: IMAGE_ID, Architecture: 'amd64', Config: { User: 'agent' } };
  return docker
    .on('image', `printf '%s\\n' '${JSON.stringify(image)}'`)
    .on('create', `echo ${CONTAINER_ID}`)
    .on('volume', VOLUMES)
    .on('container', `printf '%s\\n' '${containerJson({ running: true })}'`)
    .on('start', `exit ${exitCode}`);
}

/** An engine with one volume: the one that was created last. */
const VOLUMES = `
file=\${0%/*}/volume.json
asString() {
  rest=$1 string=
  while [ "$rest" ]; do
    after=\${rest#?} character=\${rest%"\${rest#?}"}
    case $character in ['"\\\\']) string=$string\\\\ ;; esac
    string=$string$character rest=$after
  done
  string=\\"$string\\"
}
case $2 in
create)
  labels=
  while [ $# -gt 0 ]; do
    if [ "$1" = --label ]; then
      asString "\${2%%=*}" && name=$string
      asString "\${2#*=}" && labels=$labels\${labels:+,}$name:$string
    fi
    shift
  done
  printf '[{"Driver":"local","Labels":{%s},"Options":null}]' "$labels" > "$file" ;;
inspect) read -r line < "$file"; printf '%s' "$line" ;;
esac
`;

export function containerJson(state: {
  readonly running: boolean;
  readonly started?: boolean;
  readonly exitCode?: number;
}): string {
  return JSON.stringify({
    Id: CONTAINER_ID,
    Name: '/demo',
    State: {
      Running: state.running,
      Pid: state.running ? 4242 : 0,
      ExitCode: state.exitCode ?? 0,
      Error: '',
      StartedAt: (state.started ?? true) ? '2026-01-01T00:00:00Z' : '0001-01-01T00:00:00Z',
    },
    Config: { Labels: { 'svc.session': 'ses_1' } },
  });
}
