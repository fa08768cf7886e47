import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pythonWith, succeeds, twine } from '../tools/system_parts.mjs';
import { startService, sendJson, sendText, type Service } from './matrix/service.ts';
import { npmRegistry, pythonIndex } from './matrix/services.ts';
import { makeWheel } from './matrix/world.ts';
import { type GitUpstream, PUSHED, pushScript, startGitUpstream } from './support/git_upstream.ts';
import { foundIn, plantSecret, searchFiles } from './support/planted_secret.ts';
import { Svc } from './support/svc.ts';
import { createTestCa, type Certificate } from './support/test_ca.ts';
import { listen } from './support/tls_upstream.ts';

const GITHUB_TOKEN = plantSecret();
const NPM_TOKEN = plantSecret();
const UNBOUND_HOST = 'copilot.example.test';
const NPM_HOST = 'npm.example.test';
const INDEX_TOKEN = plantSecret();
const INDEX_HOST = 'index.example.test';
const UPLOAD_TOKEN = `pypi-${plantSecret()}`;
const UPLOAD_HOST = 'upload.example.test';
const DOCKER_TOKEN = plantSecret();
const IMAGES_HOST = 'images.example.test';
const TOKEN_HOST = 'tokens.example.test';
/** What the token server gives its clients for the registry. */
const PULL_TOKEN = 'token-of-some-minutes';
const basic = (user: string, password: string): string => `Basic ${btoa(`${user}:${password}`)}`;

interface World {
  readonly svc: Svc;
  readonly api: Service;
  readonly registry: Service;
  readonly git: GitUpstream;
  readonly index: Service;
  readonly uploads: Service;
  readonly wheel: { readonly name: string; readonly bytes: Buffer };
  readonly tokens: Service;
  readonly images: ImageRegistry;
  readonly folder: string;
}
let world: World;

interface ImageRegistry {
  readonly port: number;
  readonly authorizations: (string | undefined)[];
  close(): void;
}

/** An image registry that sends its clients to a token server (Distribution's token authentication). */
async function startImageRegistry(certificate: Certificate): Promise<ImageRegistry> {
  const authorizations: (string | undefined)[] = [];
  const challenge = `Bearer realm="https://${TOKEN_HOST}/token",service="${IMAGES_HOST}"`;
  const server = createServer(certificate, (request, response) => {
    const { authorization } = request.headers;
    authorizations.push(authorization);
    if (authorization === `Bearer ${PULL_TOKEN}`) sendJson(response, 200, {});
    else response.writeHead(401, { 'www-authenticate': challenge }).end();
  });
  return { port: await listen(server), authorizations, close: () => void server.close() };
}

async function startWorld(): Promise<World> {
  const ca = await createTestCa();
  const certify = (host: string) => ca.issue([host]);
  const api = await startService(
    await ca.issue(['api.github.com', UNBOUND_HOST]),
    `token ${GITHUB_TOKEN}`,
    (request, response) => sendJson(response, 200, { login: 'octo', path: request.path }),
  );
  const registry = await startService(await certify(NPM_HOST), `Bearer ${NPM_TOKEN}`, npmRegistry());
  const git = await startGitUpstream(await certify('github.com'), 'x-access-token', GITHUB_TOKEN);
  const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-seal-'));
  const wheel = await makeWheel(folder);
  const index = await startService(
    await certify(INDEX_HOST),
    basic('__token__', INDEX_TOKEN),
    pythonIndex('demo', wheel),
  );
  const uploads = await startService(
    await certify(UPLOAD_HOST),
    basic('__token__', UPLOAD_TOKEN),
    (_request, response) => sendText(response, 'text/plain', ''),
  );
  const tokens = await startService(await certify(TOKEN_HOST), basic('octo', DOCKER_TOKEN), (_request, response) =>
    sendJson(response, 200, { token: PULL_TOKEN, expires_in: 300 }),
  );
  const images = await startImageRegistry(await certify(IMAGES_HOST));
  const resolve = [
    `${INDEX_HOST}:127.0.0.1:${index.port}`,
    `${UPLOAD_HOST}:127.0.0.1:${uploads.port}`,
    `${TOKEN_HOST}:127.0.0.1:${tokens.port}`,
    `${IMAGES_HOST}:127.0.0.1:${images.port}`,
    `api.github.com:127.0.0.1:${api.port}`,
    `${UNBOUND_HOST}:127.0.0.1:${api.port}`,
    `github.com:127.0.0.1:${git.port}`,
    `${NPM_HOST}:127.0.0.1:${registry.port}`,
  ];
  const svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve });
  return { svc, api, registry, git, index, uploads, wheel, tokens, images, folder };
}

describe('svc seal SERVICE', () => {
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => {
    await world.svc.stop();
    world.images.close();
    const { api, registry, git, index, uploads, tokens } = world;
    await Promise.all([api, registry, git, index, uploads, tokens].map((each) => each.close()));
    rmSync(world.folder, { recursive: true, force: true });
  });

  it('creates every binding of GitHub from one prompt, and reports it without the value', async () => {
    const done = await world.svc.cli(['seal', 'github', '--stdin', '--json'], { input: GITHUB_TOKEN });
    expect(done.code).toBe(0);
    expect(foundIn(done.stdout + done.stderr, GITHUB_TOKEN)).toEqual([]);
    const hosts = ['api.github.com', 'github.com', 'uploads.github.com', 'ghcr.io'];
    expect(JSON.parse(done.stdout)).toMatchObject({ bindings: hosts.map((host) => ({ host, created: true })) });
  });

  it.skipIf(!succeeds('gh --version'))('is all that gh needs', async () => {
    const env = { GH_CONFIG_DIR: join(world.folder, 'gh'), GH_PROMPT_DISABLED: '1' };
    const shown = await world.svc.ok(['run', '--', 'gh', 'api', 'user', '--jq', '.login'], { env, cwd: world.folder });
    expect(shown).toBe('octo\n');
    expect(new Set(world.api.requests.map(({ authorization }) => authorization))).toEqual(new Set([world.api.wanted]));
  });

  it.skipIf(!succeeds('test -x "$(git --exec-path)/git-http-backend"'))(
    'is all that git needs, to clone and to push',
    async () => {
      const env = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' };
      const script = pushScript('https://github.com/project.git');
      await world.svc.ok(['run', '--', 'sh', '-ec', script], { env, cwd: world.folder });
      expect(world.git.git('log', '-1', '--format=%s', 'main')).toBe(`${PUSHED}\n`);
    },
  );

  it.skipIf(!succeeds('npm --version'))(
    "is all that npm needs to publish, with the session's placeholder",
    async () => {
      await world.svc.ok(['seal', 'npm', '--stdin', '--host', NPM_HOST], { input: NPM_TOKEN });
      const made = join(world.folder, 'made');
      mkdirSync(made);
      writeFileSync(join(made, 'package.json'), JSON.stringify({ name: 'made-here', version: '1.2.3' }));
      const line = `//${NPM_HOST}/:_authToken=\${NPM_TOKEN}`;
      writeFileSync(
        join(world.folder, 'npmrc'),
        `registry=https://${NPM_HOST}/\n${line}\ncache=${world.folder}/npm-cache\n`,
      );
      const options = ['--userconfig', join(world.folder, 'npmrc'), '--no-audit', '--no-fund'];
      // The tests' svc names no registry to npm; this client has one.
      const env = { npm_config_registry: `https://${NPM_HOST}/` };
      await world.svc.ok(['run', '--', 'npm', 'publish', ...options], { cwd: made, env });
      expect(world.registry.requests.map(({ method }) => method)).toContain('PUT');
      expect(new Set(world.registry.requests.map(({ authorization }) => authorization))).toEqual(
        new Set([world.registry.wanted]),
      );
      expect(foundIn(readFileSync(join(world.folder, 'npmrc'), 'utf8'), NPM_TOKEN)).toEqual([]);
    },
  );

  it.skipIf(pythonWith('pip') === null)('a template is all that pip needs for a private index', async () => {
    await world.svc.ok(['secret', 'set', 'user/index', '--stdin'], { input: INDEX_TOKEN });
    const add = ['binding', 'add', INDEX_HOST, '--from', 'python-index', '--username', '__token__'];
    await world.svc.ok([...add, '--credential', 'user/index']);
    const url = `https://${INDEX_HOST}/simple/`;
    const env = { PIP_CONFIG_FILE: '/dev/null', PIP_NO_INPUT: '1', PIP_INDEX_URL: url, PIP_NO_CACHE_DIR: '1' };
    const into = join(world.folder, 'wheels');
    const download = ['-m', 'pip', 'download', '--no-deps', '--disable-pip-version-check', '-q', '-d', into, 'demo'];
    await world.svc.ok(['run', '--', pythonWith('pip') ?? '', ...download], { env, cwd: world.folder });
    expect(readdirSync(into)).toEqual(['demo-1.0-py3-none-any.whl']);
    const seen = world.index.requests.map(({ path, authorization }) => [path, authorization]);
    expect(seen).toContainEqual(['/packages/demo-1.0-py3-none-any.whl', world.index.wanted]);
    expect(seen.filter(([, authorization]) => authorization !== world.index.wanted)).toEqual([]);
  });

  it.skipIf(twine() === null)(
    "is all that twine needs to upload a package, with the session's placeholder",
    async () => {
      await world.svc.ok(['seal', 'pypi', '--stdin', '--host', UPLOAD_HOST], { input: UPLOAD_TOKEN });
      const { name, bytes } = world.wheel;
      const env = { TWINE_USERNAME: '__token__', TWINE_REPOSITORY_URL: `https://${UPLOAD_HOST}/legacy/` };
      const upload = ['upload', '--non-interactive', '--disable-progress-bar', '--config-file', '/dev/null', name];
      await world.svc.ok(['run', '--', twine() ?? '', ...upload], { env, cwd: world.folder });
      const seen = world.uploads.requests.map(({ method, path, authorization }) => [method, path, authorization]);
      expect(seen).toEqual([['POST', '/legacy/', world.uploads.wanted]]);
      expect(world.uploads.requests[0]?.body.includes(bytes)).toBe(true);
    },
  );

  it.skipIf(!succeeds('docker --version'))(
    'is all that docker login needs where no engine answers, and a client without a login needs nothing',
    async () => {
      await world.svc.ok(['seal', 'docker', '--stdin', '--host', TOKEN_HOST, '--username', 'octo'], {
        input: DOCKER_TOKEN,
      });
      const config = join(world.folder, 'docker');
      // An engine would make the requests itself, outside of the session.
      const env = { DOCKER_CONFIG: config, DOCKER_HOST: `unix://${world.folder}/no-engine.sock` };
      const login = `printf %s "$DOCKER_PASSWORD" | docker login --username octo --password-stdin ${IMAGES_HOST}`;
      const shown = await world.svc.ok(['run', '--', 'sh', '-c', login], { env, cwd: world.folder });
      expect(shown).toContain('Login Succeeded');
      const anonymous = `curl -sS --fail -o /dev/null "https://${TOKEN_HOST}/token?service=${IMAGES_HOST}"`;
      await world.svc.ok(['run', '--', 'sh', '-c', anonymous], { cwd: world.folder });
      expect(world.tokens.requests.map(({ authorization }) => authorization)).toEqual([
        world.tokens.wanted,
        world.tokens.wanted,
      ]);
      // The registry itself never gets the credential.
      expect(world.images.authorizations).toEqual([undefined, `Bearer ${PULL_TOKEN}`]);
      expect(readFileSync(join(config, 'config.json'), 'utf8')).toContain(btoa('octo:svc-stand-in-not-a-key-docker'));
    },
  );

  it('leaves no credential in a file', () => {
    const secrets = [GITHUB_TOKEN, NPM_TOKEN, INDEX_TOKEN, UPLOAD_TOKEN, DOCKER_TOKEN];
    expect(searchFiles(world.svc.home, secrets).holding).toEqual([]);
    expect(searchFiles(world.folder, secrets).holding).toEqual([]);
  });

  it('asks for confirmation before it replaces the value, and keeps the bindings', async () => {
    const before = await world.svc.api('GET', '/v1/host-bindings');
    const refused = await world.svc.cli(['seal', 'github', '--stdin'], { input: plantSecret() });
    expect(refused.code).toBe(2);
    const replaced = await world.svc.cli(['seal', 'github', '--stdin', '--yes', '--json'], { input: GITHUB_TOKEN });
    expect(JSON.parse(replaced.stdout)).toMatchObject({ secret: { ref: 'vault://user/github', version: 2 } });
    expect((await world.svc.api('GET', '/v1/host-bindings')).body).toEqual(before.body);
  });

  it('is not inherited by a command, unless a person asks for it, which is recorded', async () => {
    const env = { COPIED: GITHUB_TOKEN };
    const script = 'printf "%s" "${COPIED-nothing}"';
    const done = await world.svc.cli(['run', '--', 'sh', '-c', script], { env });
    expect(done.stdout).toBe('nothing');
    expect(done.stderr).toContain(
      'COPIED was taken out of the environment: it holds the stored secret vault://user/github',
    );
    const kept = await world.svc.ok(['run', '--keep-env', 'COPIED', '--', 'sh', '-c', script], { env });
    expect(kept).toBe(GITHUB_TOKEN);
    const events = (await world.svc.events()).filter(({ type }) => type === 'sandbox.proxy.credential_unsealed');
    expect(events.map(({ data }) => data)).toEqual([
      { 'svc.proxy.credential_ref': 'vault://user/github', 'svc.proxy.reason': 'kept in the environment: COPIED' },
    ]);
  });

  it('reports a placeholder that was sent to an unbound host, and what to check before binding it', async () => {
    const script = `curl -sS -o /dev/null -H "Authorization: Bearer $GH_TOKEN" https://${UNBOUND_HOST}/`;
    const done = await world.svc.cli(['run', '--', 'sh', '-c', script]);
    expect(done.code).toBe(0);
    expect(done.stderr).toContain(`svc: bind ${UNBOUND_HOST}? The placeholder of api.github.com was sent there.`);
    const listed = await world.svc.ok(['audit', 'list', '--host', UNBOUND_HOST]);
    expect(listed).toContain('placeholder_unbound');
  });
});
