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
 * A `docker` program in a folder of its own: it writes down how it was called, and runs the shell script given for the
 * subcommand, else does nothing. Its engine is a socket that anybody may connect to.
 */
export class FakeDocker {
  readonly folder = mkdtempSync(join(tmpdir(), 'svc-docker-'));
  readonly socket = join(this.folder, 'docker.sock');
  readonly endpoint = `unix://${this.socket}`;
  #engine: Server | null = null;

  constructor() {
    const script = `#!/bin/sh
{ printf 'A%s\\0' "$@"; env -0 | sed -z 's/^/E/'; printf 'X\\0'; } > "${this.folder}/use.$$"
cat "${this.folder}/use.$$" >> "${this.folder}/uses"
while [ "$1" = --host ] || [ "$1" = --config ]; do shift 2; done
[ -r "${this.folder}/$1.sh" ] || exit 0
. "${this.folder}/$1.sh"
`;
    writeFileSync(join(this.folder, 'docker'), script, { mode: 0o755 });
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
    const uses: { args: string[]; env: Record<string, string> }[] = [];
    let use = { args: [] as string[], env: {} as Record<string, string> };
    for (const item of this.#log().split('\0')) {
      const text = item.slice(1);
      if (item.startsWith('A')) use.args.push(text);
      if (item.startsWith('E')) use.env[text.slice(0, text.indexOf('='))] = text.slice(text.indexOf('=') + 1);
      if (item.startsWith('X')) {
        uses.push(use);
        use = { args: [], env: {} };
      }
    }
    return uses;
  }

  /** The uses without the words that bind them to the engine. */
  commands(): readonly (readonly string[])[] {
    return this.uses().map(({ args }) => withoutBinding(args));
  }

  #log(): string {
    try {
      return readFileSync(join(this.folder, 'uses'), 'utf8');
    } catch {
      return '';
    }
  }
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
    .on('volume', `exec '${process.execPath}' -e '${VOLUMES}' '${docker.folder}' "$@"`)
    .on('container', `printf '%s\\n' '${containerJson({ running: true })}'`)
    .on('start', `exit ${exitCode}`);
}

/** An engine with one volume: the one that was created last. */
const VOLUMES = `
const { readFileSync, writeFileSync } = require("node:fs");
const [folder, , verb, ...words] = process.argv.slice(1);
const file = folder + "/volume.json";
const Labels = {};
for (const [at, word] of words.entries()) {
  if (words[at - 1] === "--label") Labels[word.slice(0, word.indexOf("="))] = word.slice(word.indexOf("=") + 1);
}
if (verb === "create") writeFileSync(file, JSON.stringify([{ Driver: "local", Labels, Options: null }]));
if (verb === "inspect") process.stdout.write(readFileSync(file));
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
