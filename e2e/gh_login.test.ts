import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { succeeds } from '../tools/system_parts.mjs';
import { type GitUpstream, PUSHED, pushScript, startGitUpstream } from './support/git_upstream.ts';
import { foundIn, searchFiles, searchProcesses } from './support/planted_secret.ts';
import { type Finished, shellEnvironment } from './support/program.ts';
import { Svc } from './support/svc.ts';
import { createTestCa } from './support/test_ca.ts';
import { listen } from './support/tls_upstream.ts';

// The device login of the real gh, in the session of `svc login gh`: against a code host that issues a token only for the code
// of its own device request, and only after the person has confirmed it.

const CLIENT = '178c6fc778ccc68e1d6a';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const TOKEN = `gho_${randomBytes(18).toString('hex')}`;
const PLACEHOLDER = 'svc-stand-in-not-a-key-github';

/** RFC 8628, as GitHub does it: replies are forms, and errors have status 200. */
class DeviceFlow {
  /** What the next polls get before the token. */
  next: string[] = [];
  readonly seen: string[] = [];
  #code: string | null = null;

  readonly answers = (request: IncomingMessage, response: ServerResponse): boolean => {
    const path = request.url ?? '';
    if (request.method !== 'POST' || !path.startsWith('/login/')) return false;
    void this.#answer(path, request, response);
    return true;
  };

  async #answer(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const fields = Object.fromEntries(new URLSearchParams(await readText(request)));
    const reply = new URLSearchParams(path === '/login/device/code' ? this.#open(fields) : this.#poll(path, fields));
    response.writeHead(200, { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' });
    response.end(reply.toString());
  }

  #open({ client_id: client, scope = '' }: Record<string, string>): Record<string, string> {
    if (client !== CLIENT || !scope.split(' ').includes('repo')) return { error: 'incorrect_client_credentials' };
    this.#code = randomBytes(20).toString('hex');
    const verification_uri = 'https://github.com/login/device';
    return { device_code: this.#code, user_code: 'ABCD-1234', verification_uri, expires_in: '900', interval: '1' };
  }

  #poll(path: string, { client_id: client, device_code: code, grant_type: grant }: Record<string, string>) {
    const isAsked = path === '/login/oauth/access_token' && client === CLIENT && grant === DEVICE_GRANT;
    if (!isAsked || code === undefined || code !== this.#code) return { error: 'incorrect_device_code' };
    const error = this.next.shift();
    this.seen.push(error ?? 'token');
    if (error !== undefined) return { error, error_description: 'It is not confirmed.' };
    this.#code = null;
    return { access_token: TOKEN, scope: 'gist,read:org,repo', token_type: 'bearer' };
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe.skipIf(!succeeds('gh --version'))('svc login gh', () => {
  const flow = new DeviceFlow();
  /** The bodies and credentials that the API has seen. */
  const asked: string[] = [];
  let folder: string;
  let git: GitUpstream;
  let svc: Svc;
  let closeApi: () => void;
  const said: string[] = [];

  const run = async (args: readonly string[], input?: string): Promise<Finished> => {
    const env = { ...shellEnvironment(), HOME: folder, XDG_CONFIG_HOME: join(folder, 'config'), GH_TOKEN: 'own-token' };
    const ran = await svc.cli(args, { env, cwd: join(folder, 'work'), ...(input !== undefined && { input }) });
    said.push(ran.stdout, ran.stderr);
    return ran;
  };
  const hostsFile = (): string => readFileSync(join(folder, 'config/gh/hosts.yml'), 'utf8');
  const expectNoToken = (): void => {
    expect(searchFiles(folder, TOKEN)).toMatchObject({ holding: [] });
    expect(searchFiles(svc.home, TOKEN)).toMatchObject({ holding: [] });
    expect(searchProcesses(TOKEN).holding).toEqual([]);
    expect(said.flatMap((text) => foundIn(text, TOKEN))).toEqual([]);
  };

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-e2e-gh-login-'));
    mkdirSync(join(folder, 'work'));
    const ca = await createTestCa();
    git = await startGitUpstream(await ca.issue(['github.com']), 'x-access-token', TOKEN, flow.answers);
    const answerApi = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const body = await readText(request);
      const { authorization = '' } = request.headers;
      asked.push(`${request.method} ${request.url} ${authorization.replace(TOKEN, 'TOKEN')} ${body}`);
      const isKnown = [`token ${TOKEN}`, `Bearer ${TOKEN}`].includes(authorization);
      response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' });
      const user = { login: 'octo', data: { viewer: { login: 'octo' } } };
      response.end(JSON.stringify(isKnown ? user : { message: 'Bad credentials' }));
    };
    const api = createServer(
      await ca.issue(['api.github.com']),
      (request, response) => void answerApi(request, response),
    );
    const port = await listen(api);
    closeApi = () => {
      api.closeAllConnections();
      api.close();
    };
    const resolve = [`api.github.com:127.0.0.1:${port}`, `github.com:127.0.0.1:${git.port}`];
    svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve });
  });
  afterAll(async () => {
    await svc.stop();
    closeApi();
    await git.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('stores nothing if the code expires before it is confirmed', async () => {
    flow.next = ['expired_token'];
    const ran = await run(['login', 'gh', '--yes']);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('gh did not log in: nothing was stored');
    expect(flow.seen).toEqual(['expired_token']);
    expect((await svc.api('GET', '/v1/secrets')).body).toMatchObject({ items: [] });
    expect((await svc.api('GET', '/v1/host-bindings')).body).toMatchObject({ items: [] });
  });

  it('stores the token as the one secret of GitHub, and gh gets the placeholder', async () => {
    flow.next = ['authorization_pending'];
    flow.seen.length = 0;
    const ran = await run(['login', 'gh', '--yes']);
    expect(ran.stderr).toContain('ABCD-1234');
    expect(ran.stderr).toContain('gh logged in: octo');
    expect(ran).toMatchObject({ code: 0 });
    expect(ran.stderr).not.toContain('does not have the placeholder');
    expect(flow.seen).toEqual(['authorization_pending', 'token']);
    expect(asked).toEqual(['POST /graphql Bearer TOKEN {"query":"query UserCurrent{viewer{login}}"}']);
    expect(hostsFile()).toContain(`oauth_token: ${PLACEHOLDER}`);
    expect(hostsFile()).toContain('user: octo');
    const bound = JSON.parse((await run(['binding', 'list', '--json'])).stdout);
    const refs = bound.items.map(({ host, credential_ref: ref }: Record<string, string>) => `${host} ${ref}`);
    const hosts = ['api.github.com', 'ghcr.io', 'github.com', 'uploads.github.com'];
    expect(refs.toSorted()).toEqual(hosts.map((host) => `${host} vault://user/github`));
    expectNoToken();
  });

  it('is all that gh needs, with the file that it wrote itself', async () => {
    const ran = await run(['run', '--', 'env', '-u', 'GH_TOKEN', 'gh', 'api', 'user', '--jq', '.login']);
    expect(ran).toMatchObject({ code: 0, stdout: 'octo\n' });
    expect(asked.at(-1)).toBe('GET /user token TOKEN ');
    expectNoToken();
  });

  it.skipIf(!succeeds('test -x "$(git --exec-path)/git-http-backend"'))('is all that git needs to push', async () => {
    const script = pushScript('https://github.com/project.git');
    expect(await run(['run', '--', 'sh', '-ec', script])).toMatchObject({ code: 0 });
    expect(git.git('log', '-1', '--format=%s', 'main')).toBe(`${PUSHED}\n`);
    expectNoToken();
  });

  it('shows the secret that it replaces', async () => {
    const ran = await run(['login', 'gh', '--yes']);
    expect(ran.stderr).toContain('It replaces vault://user/github');
    expect(ran).toMatchObject({ code: 0 });
    expectNoToken();
  });
});
