import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Certificate } from './test_ca.ts';
import { listen } from './tls_upstream.ts';

export interface GitUpstream {
  readonly port: number;
  /** The Authorization header of each request, in order. */
  readonly authorizations: (string | undefined)[];
  /** Runs git on the server's repository and returns its output. */
  git(...args: string[]): string;
  close(): Promise<void>;
}

function git(...args: string[]): string {
  const done = spawnSync('git', args, { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`git ${args.join(' ')}: ${done.stderr}`);
  return done.stdout;
}

/** git's own HTTP server behind TLS and basic authentication, with one repository `project.git`. `password`: a function if it changes. What `answers` takes is not git's. */
export async function startGitUpstream(
  certificate: Certificate,
  user: string,
  password: string | (() => string),
  answers: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
): Promise<GitUpstream> {
  const root = mkdtempSync(join(tmpdir(), 'svc-e2e-git-'));
  const repository = join(root, 'project.git');
  git('init', '-q', '--bare', '-b', 'main', repository);
  git('-C', repository, 'config', 'http.receivepack', 'true');
  const authorizations: (string | undefined)[] = [];
  const wanted = (): string => {
    const now = typeof password === 'string' ? password : password();
    return `Basic ${Buffer.from(`${user}:${now}`).toString('base64')}`;
  };
  const server = createServer(certificate, (request, response) => {
    if (answers(request, response)) return;
    authorizations.push(request.headers.authorization);
    if (request.headers.authorization === wanted()) {
      runBackend(root, user, request, response);
      return;
    }
    request.resume();
    response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end('sign in\n');
  });
  const port = await listen(server);
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(root, { recursive: true, force: true });
  };
  return { port, authorizations, git: (...args) => git('-C', repository, ...args), close };
}

/** Runs `git http-backend` as a CGI program for one request. */
function runBackend(root: string, user: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', 'https://git.invalid');
  const backend = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      REQUEST_METHOD: request.method,
      PATH_INFO: decodeURIComponent(url.pathname),
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      CONTENT_LENGTH: request.headers['content-length'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REMOTE_USER: user,
      REMOTE_ADDR: '127.0.0.1',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  backend.stdin.on('error', () => undefined);
  request.pipe(backend.stdin);
  let held: Buffer | null = Buffer.alloc(0);
  backend.stdout.on('data', (chunk: Buffer) => {
    if (held === null) {
      response.write(chunk);
      return;
    }
    held = Buffer.concat([held, chunk]);
    const end = held.indexOf('\r\n\r\n');
    if (end < 0) return;
    writeCgiHead(response, held.toString('latin1', 0, end));
    response.write(held.subarray(end + 4));
    held = null;
  });
  backend.on('close', () => response.end());
}

/** The subject of the commit that `pushScript` makes. */
export const PUSHED = 'A commit';

/** A script for `sh -e`: clones the repository into the folder `clone` and pushes a commit to it. */
export const pushScript = (url: string): string =>
  `git clone -q ${url} clone
cd clone
git -c user.name=A -c user.email=a@example.test commit -q --allow-empty -m '${PUSHED}'
git push -q origin HEAD:main`;

function writeCgiHead(response: ServerResponse, head: string): void {
  for (const line of head.split('\r\n')) {
    const [name = '', value = ''] = line.split(/: (.*)/s);
    if (name.toLowerCase() === 'status') response.statusCode = Number.parseInt(value, 10);
    else response.setHeader(name, value);
  }
}
