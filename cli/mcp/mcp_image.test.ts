import { existsSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { snapshotRecord } from '../../shared/wire/mcp/mcp_gateway.ts';
import { consentOf } from '../../sidecar/mcp/server_directory.ts';
import { FakeDocker, imageReply } from '../../sandbox/launch/testing/fake_docker.ts';
import { type Answer, runCli, type RunOptions, TestHome } from '../testing/run_cli.ts';
import { ME } from '../testing/me_sample.ts';

const TIME = '2026-01-01T12:00:00.000Z';
const CONSENTED = `sha256:${'a'.repeat(64)}`;
const MOVED = `sha256:${'b'.repeat(64)}`;
const own = localServer({ command: ['docker', 'run', '-i', '--platform', 'linux/amd64', 'acme/mcp:1.2'] });
const { hash, text } = consentOf(own) ?? { hash: '', text: '' };

let home: TestHome;
let docker: FakeDocker;
/** The consent that this machine has. */
let known: { consent: 'given' | 'needed'; last_consent: object | null; image: string | null };

beforeEach(async () => {
  home = new TestHome();
  docker = new FakeDocker();
  await docker.listen();
  known = { consent: 'needed', last_consent: null, image: null };
});
afterEach(async () => {
  await docker.remove();
  home.remove();
});

/** The images of the engine, by each name. A pull brings the one that `pulled` says, under the tag. */
function useEngine(images: Readonly<Record<string, string>>, pulled: string | null = null): void {
  const file = `${docker.folder}/pulled`;
  if (pulled !== null) {
    const body = imageReply(pulled);
    docker.handles('GET /images/acme/mcp:1.2/json', () => (existsSync(file) ? { status: 200, body } : { status: 404 }));
  }
  for (const [name, id] of Object.entries(images)) docker.replies(`GET /images/${name}/json`, 200, imageReply(id));
  docker.on('pull', pulled === null ? 'echo no route to the registry >&2; exit 1' : `: > ${file}`);
}

const answer: Answer = ({ method, url }) => {
  if (url.pathname === '/v1/me') return { status: 200, body: ME };
  if (method === 'POST') return { status: 204 };
  const health = { state: 'stopped', last_error: null, checked_at: TIME, restarts: null, tools: null, gateways: 0 };
  const server = snapshotRecord({ server: own, authorization: null });
  const item = { server, consent_hash: hash, missing: [], credentials: '', health, ...known };
  return { status: 200, body: { version: 'v', items: [item], problems: [] } };
};

async function run(words: readonly string[], options: RunOptions = {}) {
  const done = await runCli(home, ['mcp', ...words], { answer, env: docker.env(), ...options });
  return { ...done, posted: done.calls.find(({ method }) => method === 'POST')?.body ?? null };
}

function giveBefore(): void {
  known = { consent: 'given', last_consent: { hash, text, consented_at: TIME }, image: CONSENTED };
}

describe("consent to a server's own docker run", () => {
  test('shows the id of its image and covers exactly this one', async () => {
    useEngine({ 'acme/mcp:1.2': CONSENTED });
    const done = await run(['consent', 'demo', '--yes']);
    expect(done.stdout).toContain(`acme/mcp:1.2, which is ${CONSENTED}`);
    expect(done.posted).toEqual({ consent_hash: hash, image: CONSENTED });
  });

  test('fetches an image that the engine lacks, for its platform, and says so', async () => {
    useEngine({}, MOVED);
    const done = await run(['consent', 'demo', '--yes']);
    expect(done.stderr).toContain('fetching the image acme/mcp:1.2');
    expect(docker.commands()).toContainEqual(['pull', '--quiet', '--platform', 'linux/amd64', 'acme/mcp:1.2']);
    expect(done.posted).toEqual({ consent_hash: hash, image: MOVED });
  });

  test('is not given if the image cannot be had', async () => {
    useEngine({});
    const done = await run(['consent', 'demo', '--yes']);
    expect([done.code, done.posted]).toEqual([1, null]);
    expect(done.stderr).toContain('no route to the registry');
  });

  test('is not asked again while the tag names the same image', async () => {
    giveBefore();
    useEngine({ 'acme/mcp:1.2': CONSENTED, [CONSENTED]: CONSENTED });
    const done = await run(['consent', 'demo', '--yes']);
    expect(done.posted).toBeNull();
    expect(done.stderr).toContain('already has your consent');
  });

  test('is asked again, with the change, once the tag names another image', async () => {
    giveBefore();
    useEngine({ 'acme/mcp:1.2': MOVED, [CONSENTED]: CONSENTED });
    const done = await run(['consent', 'demo', '--yes']);
    expect(done.stdout).toMatch(new RegExp(`- image ${CONSENTED}\\n.*\\+ image ${MOVED}`));
    expect(done.posted).toEqual({ consent_hash: hash, image: MOVED });
  });

  test('says that an earlier version did not record the image', async () => {
    known.last_consent = { hash, text, consented_at: TIME };
    useEngine({ 'acme/mcp:1.2': CONSENTED });
    const done = await run(['consent', 'demo', '--yes']);
    expect(done.stdout).toContain('its image was not part of the earlier consent');
    expect(done.posted).toEqual({ consent_hash: hash, image: CONSENTED });
  });
});

describe.each([[['status']], [['consent']]])('svc mcp %s', (words) => {
  test('says that a tag has moved', async () => {
    giveBefore();
    useEngine({ 'acme/mcp:1.2': MOVED, [CONSENTED]: CONSENTED });
    const done = await run(words);
    expect(done.stderr).toContain(`demo: acme/mcp:1.2 now names another image (${MOVED})`);
    expect(done.stderr).toContain('svc mcp consent demo');
    expect(done.posted).toBeNull();
  });

  test('says that the image is gone', async () => {
    giveBefore();
    useEngine({ 'acme/mcp:1.2': MOVED });
    expect((await run(words)).stderr).toContain(`that you consented to (${CONSENTED}) is not in the engine any more`);
  });

  test('says nothing while it is there under its tag', async () => {
    giveBefore();
    useEngine({ 'acme/mcp:1.2': CONSENTED, [CONSENTED]: CONSENTED });
    expect((await run(words)).stderr).toBe('');
  });
});
