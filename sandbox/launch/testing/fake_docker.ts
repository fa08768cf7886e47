import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { z } from 'zod';
import { parseJson } from '../../../shared/model/json.ts';

export const IMAGE_ID = `sha256:${'a'.repeat(64)}`;
export const CONTAINER_ID = 'c'.repeat(64);

/** One use of the program. */
interface DockerUse {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

interface ApiReply {
  readonly status: number;
  readonly body?: unknown;
}

const containerCreation = z.looseObject({
  Image: z.string(),
  Labels: z.record(z.string(), z.string()),
  Env: z
    .array(z.string())
    .transform((entries): Record<string, string> =>
      Object.fromEntries(
        entries.map((entry): [string, string] => [entry.split('=', 1)[0] ?? '', entry.replace(/^[^=]*=/, '')]),
      ),
    ),
  Cmd: z.array(z.string()).default([]),
  HostConfig: z.looseObject({ Mounts: z.array(z.looseObject({ Source: z.string(), Target: z.string() })) }),
});
/** A container that is to be made, with its environment by name. */
export type Creation = z.output<typeof containerCreation>;

type ApiHandler = (body: unknown) => ApiReply;

const refuse: ApiHandler = () => ({ status: 404, body: { message: 'no such thing' } });

/**
 * A `docker` or `podman` program in a folder of its own: it writes down how it was called, and runs the shell script given for the
 * subcommand, else does nothing. It starts no other program, which would take most of the time of a test. Its engine replies to
 * calls of the API what the test says, else that there is no such thing.
 */
export class FakeDocker {
  readonly folder = mkdtempSync(join(tmpdir(), 'svc-docker-'));
  readonly socket = join(this.folder, 'docker.sock');
  readonly endpoint = `unix://${this.socket}`;
  readonly #replies = new Map<string, ApiHandler>();
  readonly #sent: (readonly [call: string, body: unknown])[] = [];
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

  /**
   * What the engine replies to a method and a path, such as `GET /images/x/json`, or with `*` to those of each image; the query does
   * not count. A string is its reason for a refusal.
   */
  replies(call: string, status: number, body?: unknown): this {
    return this.handles(call, () => ({ status, body: typeof body === 'string' ? { message: body } : body }));
  }

  /** The same by a function, which gets the body. */
  handles(call: string, handler: ApiHandler): this {
    this.#replies.set(call, handler);
    return this;
  }

  listen(): Promise<void> {
    const engine = createServer((call, response) => void this.#answer(call, response));
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

  /** The uses of the program. */
  uses(): readonly DockerUse[] {
    return this.#lines()
      .filter((line) => !line.includes(' '))
      .map((pid) => this.#useOf(pid));
  }

  /** The uses of the program without the words that bind them to the engine. */
  commands(): readonly (readonly string[])[] {
    return this.uses().map(({ args }) => withoutBinding(args));
  }

  /** In their order, each use of the program by its subcommand, and each call of the API by its method and path with the query. */
  calls(): readonly string[] {
    return this.#lines().map((line) => (line.includes(' ') ? line : (withoutBinding(this.#useOf(line).args)[0] ?? '')));
  }

  async #answer(call: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = call;
    appendFileSync(join(this.folder, 'uses'), `${method} ${url}\n`);
    const name = `${method} ${decodeURIComponent(url.replace(/\?.*/, ''))}`;
    const body = parseJson(await readText(call));
    this.#sent.push([name, body]);
    const reply = this.#handlerOf(name)(body);
    response.writeHead(reply.status).end(reply.body === undefined ? '' : JSON.stringify(reply.body));
  }

  /** The bodies that a call of the API was given. */
  bodiesOf(wanted: string): readonly unknown[] {
    return this.#sent.filter(([call]) => call === wanted).map(([, body]) => body);
  }

  /** The last container that the API was asked for. */
  creation(): Creation | null {
    const body = this.bodiesOf('POST /containers/create').at(-1);
    return body === undefined ? null : containerCreation.parse(body);
  }

  #handlerOf(call: string): ApiHandler {
    const ofEachImage = call.replace(/(?<=^GET \/images\/).*(?=\/json$)/, '*');
    return this.#replies.get(call) ?? this.#replies.get(ofEachImage) ?? refuse;
  }

  #lines(): readonly string[] {
    return this.#read('uses').split('\n').slice(0, -1);
  }

  #useOf(pid: string): DockerUse {
    const [, args = '', exported = ''] = /^(.*\0)?\0(.*)$/s.exec(this.#read(`use.${pid}`)) ?? [];
    return { args: args.split('\0').slice(0, -1), env: exportedVariables(exported) };
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
  return scriptVolumes(docker)
    .replies('GET /images/*/json', 200, imageReply(IMAGE_ID, { User: 'agent' }))
    .replies(`GET /containers/${CONTAINER_ID}/json`, 200, containerState({ running: true }))
    .replies(`POST /containers/${CONTAINER_ID}/start`, 204)
    .replies(`DELETE /containers/${CONTAINER_ID}`, 204)
    .replies('POST /containers/create', 201, { Id: CONTAINER_ID })
    .on('create', `echo ${CONTAINER_ID}`)
    .on('start', `exit ${exitCode}`);
}

const volumeCreation = z.object({ Name: z.string(), Labels: z.record(z.string(), z.string()) });
type VolumeCreation = z.output<typeof volumeCreation>;

/** An engine that has this volume after a creation. Its reply to that says little of it, as after a restart of the engine. */
export function scriptVolumes(
  docker: FakeDocker,
  volumeOf = (creation: VolumeCreation): object => ({ ...creation, Driver: 'local', Options: null }),
): FakeDocker {
  return docker.handles('POST /volumes/create', (body) => {
    const creation = volumeCreation.parse(body);
    docker.replies(`GET /volumes/${creation.Name}`, 200, volumeOf(creation));
    return { status: 201, body: { Name: creation.Name } };
  });
}

/** The engine's reply about an image. */
export function imageReply(id: string, config: object = {}): object {
  return { Id: id, Architecture: 'amd64', Config: config };
}

/** The engine's reply about the container. */
export function containerState(state: {
  readonly running: boolean;
  readonly started?: boolean;
  readonly exitCode?: number;
}): object {
  return {
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
  };
}
