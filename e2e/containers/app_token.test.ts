import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { json } from 'node:stream/consumers';
import { jwtVerify } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type GitUpstream, startGitUpstream } from '../support/git_upstream.ts';
import { foundIn, searchFiles } from '../support/planted_secret.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { listen } from '../support/tls_upstream.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';

/** As GitHub has it: git takes the tokens of an app's installation as the password of this user. */
const USER = 'x-access-token';
const HOST = 'git.example.test';
const ASKED = { repositories: ['project'], permissions: { contents: 'write' } };
const GIT = 'git -c user.name=Agent -c user.email=agent@example.test';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const minted: string[] = [];
const asked: unknown[] = [];
let bench: Bench;
let api: Server;
let git: GitUpstream;
let svc: Svc;

/** GitHub's `POST /app/installations/{id}/access_tokens`, by its reference. */
async function mint(request: IncomingMessage): Promise<{ status: number; body: object }> {
  const [, jwt = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
  const verified = await jwtVerify(jwt, publicKey, { issuer: '12', algorithms: ['RS256'] }).catch(() => null);
  if (verified === null || request.method !== 'POST' || request.url !== '/app/installations/9/access_tokens') {
    return { status: 401, body: { message: 'A JSON web token could not be decoded' } };
  }
  asked.push(await json(request));
  const token = `ghs_${randomUUID().replaceAll('-', '')}`;
  minted.push(token);
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  const repositories = [{ name: 'project' }];
  return {
    status: 201,
    body: { token, expires_at: expiresAt, permissions: { contents: 'write', metadata: 'read' }, repositories },
  };
}

describeContainers('git with a token of a GitHub App, which nobody stores', () => {
  beforeAll(async () => {
    bench = await openBench();
    const ca = await createTestCa();
    api = createServer((request, response) => {
      void mint(request).then(({ status, body }) => response.writeHead(status).end(JSON.stringify(body)));
    });
    const port = await listen(api);
    git = await startGitUpstream(await ca.issue([HOST]), USER, () => minted.at(-1) ?? randomUUID());
    svc = await Svc.up({
      env: bench.engine.environment,
      upstreamCaFiles: [ca.file],
      resolve: [`${HOST}:127.0.0.1:${git.port}`],
    });
    const fields = ['app_id=12', 'installation_id=9', 'repositories=project', 'permissions=contents=write'];
    const set = [...fields, `api_url=http://127.0.0.1:${port}`].flatMap((field) => ['--set', field]);
    await svc.ok(['secret', 'source', 'add', 'ci/github', 'github_app', '--stdin', ...set], { input: KEY });
    await svc.binding({ host: HOST, scheme: 'basic', username: USER, credential_ref: 'vault://ci/github' });
  });
  afterAll(async () => {
    await svc.stop();
    await git.close();
    api.closeAllConnections();
    await new Promise((resolve) => api.close(resolve));
    bench.clear();
  });

  it('clones, commits and pushes in a sealed container with an empty home, and leaves the token nowhere', async () => {
    const folder = bench.folder('work');
    const script = `set -e
      git clone -q https://${HOST}/project.git . 2>&1
      printf 'from an agent\\n' > file && git add file && ${GIT} commit -q -m 'An agent was here'
      git push -q origin HEAD:main
      git clone -q https://${HOST}/project.git again && git -C again log --format=%s
      git config --list --show-origin; ls -A ~; env`;
    const ran = await bench.launch(svc, ['--egress=sealed'], ['sh', '-c', script], {
      cwd: folder,
      env: { GIT_TERMINAL_PROMPT: '0' },
    });
    expect({ code: ran.code, stderr: ran.code === 0 ? '' : ran.stderr }).toEqual({ code: 0, stderr: '' });
    expect(ran.stdout).toContain('An agent was here\n');
    expect(git.git('log', '--format=%s', 'main')).toBe('An agent was here\n');
    expect(minted).toHaveLength(1);
    expect(asked).toEqual([ASKED]);
    for (const secret of [...minted, KEY]) {
      expect(foundIn(ran.stdout + ran.stderr, secret)).toEqual([]);
      expect(searchFiles(folder, secret).holding).toEqual([]);
      expect(searchFiles(svc.home, secret).holding).toEqual([]);
      expect(foundIn(JSON.stringify(await svc.events()), secret)).toEqual([]);
    }
  });
});
