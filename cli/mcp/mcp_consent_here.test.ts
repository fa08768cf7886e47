import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { consentText } from '../../shared/mcp/consent_hash.ts';
import { mcpServerInput, type McpServerRecord, toMcpServer } from '../../shared/wire/mcp/mcp_servers.ts';
import type { ListedServer } from '../../shared/wire/mcp/mcp_gateway.ts';
import { FakeDocker, imageReply } from '../../sandbox/launch/testing/fake_docker.ts';
import { PROXY_URL, runCli, TestHome, type Answer } from '../testing/run_cli.ts';
import { ME } from '../testing/me_sample.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const ID = 'mcp_01m7yjbz4dz98vffmftfxp52e5';
const time = '2026-01-01T11:59:00.000Z';

function recordOf(command: readonly string[], env: Readonly<Record<string, string>> = {}): McpServerRecord {
  return {
    ...mcpServerInput.parse({ name: 'files', command: [...command], env }),
    id: ID,
    registry_id: null,
    revision: 1,
    status: 'stopped',
    health: null,
    credentials: [],
    authorization: null,
    warnings: [],
    rule_problem: null,
    created_at: time,
    updated_at: time,
  };
}

const hashOf = (record: McpServerRecord) =>
  createHash('sha256')
    .update(consentText(toMcpServer(record)))
    .digest('hex');

/** A control plane that stores a record, and a sidecar with it; records the hashes that got consent. */
class Machine {
  record: McpServerRecord;
  consent: 'given' | 'needed';
  readonly consented: unknown[] = [];
  /** The images that got consent. */
  readonly images: unknown[] = [];
  last: Pick<ListedServer, 'last_consent' | 'image'> = { last_consent: null, image: null };
  /** The record that the control plane makes of a write. */
  onWrite: (body: unknown) => McpServerRecord = () => this.record;

  constructor(record: McpServerRecord, consent: 'given' | 'needed') {
    this.record = record;
    this.consent = consent;
  }

  readonly answer: Answer = ({ method, url, body }) => {
    if (url.origin === PROXY_URL) return this.#sidecar(method, body);
    if (url.pathname === '/v1/me') return { status: 200, body: ME };
    if (method === 'GET') return { status: 200, body: { items: [this.record], next_cursor: null } };
    if (method === 'DELETE') return { status: 204 };
    this.record = this.onWrite(body);
    this.consent = 'needed';
    if (url.pathname.endsWith('/credentials')) return { status: 200, body: { env_var_name: 'TOKEN', stored: true } };
    return { status: method === 'POST' ? 201 : 200, body: this.record };
  };

  #sidecar(method: string, body: unknown): ReturnType<Answer> {
    if (method === 'POST') {
      const given = z.object({ consent_hash: z.string(), image: z.string().optional() }).parse(body);
      this.consented.push(given.consent_hash);
      this.images.push(given.image);
      return { status: 204 };
    }
    const {
      health: _h,
      credentials: _c,
      status: _s,
      warnings: _w,
      rule_problem: _r,
      created_at: _m,
      updated_at: _u,
      ...server
    } = this.record;
    const health: ListedServer['health'] = {
      state: 'needs_consent',
      last_error: null,
      checked_at: time,
      restarts: null,
      tools: null,
      gateways: 0,
    };
    const item: ListedServer = {
      server,
      consent: this.consent,
      consent_hash: hashOf(this.record),
      missing: [],
      credentials: '',
      reviewed: null,
      reviewed_kinds: ['tool'],
      allowed_hosts: null,
      ...this.last,
      refused_hosts: [],
      health,
    };
    return { status: 200, body: { version: '1', items: [item], problems: [] } };
  }
}

const run = (machine: Machine, ...argv: readonly string[]) =>
  runCli(home, ['mcp', ...argv], { answer: machine.answer });

test('adding a server gives consent on this machine', async () => {
  const record = recordOf(['npx', 'a-server@1.0.0', '--all']);
  const machine = new Machine(record, 'needed');
  const result = await run(machine, 'add', 'files', '--', 'npx', 'a-server@1.0.0', '--all');
  expect([result.code, machine.consented]).toEqual([0, [hashOf(record)]]);
  expect(result.stderr).not.toContain('svc mcp consent');
});

test('a control plane that changes what was typed gets no consent', async () => {
  const machine = new Machine(recordOf(['npx', 'a-server@1.0.0']), 'needed');
  machine.onWrite = () => recordOf(['evil']);
  const result = await run(machine, 'add', 'files', '--', 'npx', 'a-server@1.0.0');
  expect([result.code, machine.consented]).toEqual([0, []]);
  expect(result.stderr).toContain('svc mcp consent files');
});

test('what an agent in a session adds gets no consent', async () => {
  const machine = new Machine(recordOf(['npx', 'a-server@1.0.0']), 'needed');
  const argv = ['mcp', 'add', 'files', '--', 'npx', 'a-server@1.0.0'];
  const result = await runCli(home, argv, { answer: machine.answer, env: { SVC_SESSION_ID: 'ses_1' } });
  expect([result.code, machine.consented]).toEqual([0, []]);
  expect(result.stderr).toContain('svc mcp consent files');
});

test('adding unchecked code still needs a separate consent', async () => {
  const machine = new Machine(recordOf(['erl', '-eval', 'x']), 'needed');
  const result = await run(machine, 'add', 'files', '--', 'erl', '-eval', 'x');
  expect([result.code, machine.consented]).toEqual([0, []]);
  expect(result.stderr).toContain('svc mcp consent files');
});

test('an update keeps a given consent but gives none where there was none', async () => {
  for (const consent of ['given', 'needed'] as const) {
    const machine = new Machine(recordOf(['npx', 'a-server@1.0.0']), consent);
    const after = recordOf(['npx', 'a-server@1.0.0'], { LOG: 'x' });
    machine.onWrite = () => after;
    await run(machine, 'update', 'files', '--env', 'LOG=x');
    expect([consent, machine.consented]).toEqual([consent, consent === 'given' ? [hashOf(after)] : []]);
  }
});

test('a credential that adds a variable keeps a given consent and gives none where there was none', async () => {
  for (const consent of ['given', 'needed'] as const) {
    const machine = new Machine(recordOf(['npx', 'a-server@1.0.0']), consent);
    const after = recordOf(['npx', 'a-server@1.0.0'], { TOKEN: `vault://mcp-servers/${ID}/TOKEN` });
    machine.onWrite = () => after;
    const argv = ['mcp', 'credential', 'set', 'files', 'TOKEN', '--stdin'];
    await runCli(home, argv, { answer: machine.answer, stdin: 'planted-secret' });
    expect([consent, machine.consented]).toEqual([consent, consent === 'given' ? [hashOf(after)] : []]);
  }
});

test('says that a launcher fetches its package at the start, and what to write instead', async () => {
  const command = ['bunx', '@acme/files@1.0.0'];
  const added = await run(new Machine(recordOf(command), 'needed'), 'add', 'files', '--', ...command);
  expect([added.code, added.stderr]).toEqual([0, expect.stringContaining('npx -y @acme/files@VERSION')]);
  const looked = await run(new Machine(recordOf(command), 'needed'), 'consent', 'files', '--yes');
  expect(looked.stdout + looked.stderr).toMatch(/fetches +bunx fetches its package at the start/);
});

const runOf = (tag: string) => ['docker', 'run', '-i', `acme/mcp:${tag}`];

describe("the image of a server's own docker run", () => {
  const BEFORE = `sha256:${'a'.repeat(64)}`;
  const NOW = `sha256:${'b'.repeat(64)}`;
  let docker: FakeDocker;

  beforeEach(async () => {
    docker = new FakeDocker().replies('GET /images/*/json', 200, imageReply(NOW));
    await docker.listen();
  });
  afterEach(() => docker.remove());

  test('gets consent when it is typed, and its id is said', async () => {
    const machine = new Machine(recordOf(runOf('1')), 'needed');
    const argv = ['mcp', 'add', 'files', '--', ...runOf('1')];
    const result = await runCli(home, argv, { answer: machine.answer, env: docker.env() });
    expect([result.code, machine.images]).toEqual([0, [NOW]]);
    expect(result.stderr).toContain(`files runs the image acme/mcp:1, which is ${NOW}`);
  });

  test('gets none if no engine has it; the server is stored', async () => {
    const machine = new Machine(recordOf(runOf('1')), 'needed');
    const env = docker.env({ DOCKER_HOST: 'unix:///nonexistent.sock' });
    const argv = ['mcp', 'add', 'files', '--', ...runOf('1')];
    const result = await runCli(home, argv, { answer: machine.answer, env });
    expect([result.code, machine.images]).toEqual([0, []]);
    expect(result.stderr).toContain('svc mcp consent files');
  });

  test.each([
    ['stays the same if another part is changed, even if the tag has moved', '1', BEFORE],
    ['is looked up for another tag', '2', NOW],
  ])('%s', async (_, tag, image) => {
    const record = recordOf(runOf('1'));
    const machine = new Machine(record, 'given');
    const text = consentText(toMcpServer(record));
    machine.last = { last_consent: { hash: hashOf(record), text, consented_at: time }, image: BEFORE };
    machine.onWrite = () => recordOf(runOf(tag), { LOG: 'x' });
    const argv = ['mcp', 'update', 'files', '--env', 'LOG=x', '--', ...runOf(tag)];
    await runCli(home, argv, { answer: machine.answer, env: docker.env() });
    expect(machine.images).toEqual([image]);
  });
});

describe('this machine receives the change', () => {
  const stored = { name: 'TOKEN', required: true, set: true, updated_at: time };
  const remote = { mode: 'remote' as const, command: [], env: {}, url: 'https://mcp.example.com/mcp' };
  const remoteRecord = { ...recordOf(['npx', 'a-server@1.0.0']), ...remote, transport: 'streamable-http' as const };

  test.each([
    ['add', ['add', 'files', '--', 'npx', 'a-server@1.0.0'], recordOf(['npx', 'a-server@1.0.0'])],
    ['add, of a remote server', ['add', 'files', '--url', remote.url], remoteRecord],
    ['update', ['update', 'files', '--description', 'x'], recordOf(['npx', 'a-server@1.0.0'])],
    ['enable', ['enable', 'files'], recordOf(['npx', 'a-server@1.0.0'])],
    ['disable', ['disable', 'files'], recordOf(['npx', 'a-server@1.0.0'])],
    ['tools', ['tools', 'files', '--deny', 'write_*'], recordOf(['npx', 'a-server@1.0.0'])],
    ['rollback', ['rollback', 'files', '--to', '1'], recordOf(['npx', 'a-server@1.0.0'])],
    ['remove', ['remove', 'files'], recordOf(['npx', 'a-server@1.0.0'])],
    ['credential set', ['credential', 'set', 'files', 'TOKEN', '--stdin'], recordOf(['npx', 'a-server@1.0.0'])],
    ['credential unset', ['credential', 'unset', 'files', 'TOKEN'], { ...recordOf(['a']), credentials: [stored] }],
    ['authorize --forget', ['authorize', 'files', '--forget'], remoteRecord],
  ])('before svc mcp %s returns', async (_, argv, record) => {
    const machine = new Machine(record, 'needed');
    const { code, calls } = await runCli(home, ['mcp', ...argv], { answer: machine.answer, stdin: 'planted-secret' });
    expect(code).toBe(0);
    const written = calls.findIndex(({ method, url }) => method !== 'GET' && url.origin !== PROXY_URL);
    const waits = calls.slice(written + 1).filter(({ method, url }) => method === 'GET' && url.origin === PROXY_URL);
    expect(waits.map(({ url }) => url.pathname + url.search)).toEqual([
      `/v1/mcp/servers?min_policy_version=${ME.policy_version}`,
    ]);
  });

  test('or the command warns if the sidecar is late; the change is stored', async () => {
    const machine = new Machine(recordOf(['npx', 'a-server@1.0.0']), 'needed');
    const late = { code: 'control_plane_unavailable', message: 'Version 2 is the newest here.' };
    const answer: Answer = (call) =>
      call.url.origin === PROXY_URL ? { status: 503, body: { error: late } } : machine.answer(call);
    const result = await runCli(home, ['mcp', 'add', 'files', '--url', remote.url], { answer });
    expect([result.code, result.stdout]).toEqual([0, `${ID}\n`]);
    expect(result.stderr).toContain('gateways on this machine may not have it yet: Version 2 is the newest here.');
  });

  test('or the command warns if no sidecar runs', async () => {
    const machine = new Machine(recordOf(['npx', 'a-server@1.0.0']), 'needed');
    rmSync(join(home.path, 'sidecar', 'host.token'));
    const result = await run(machine, 'remove', 'files', '--json');
    expect([result.code, JSON.parse(result.stdout)]).toEqual([0, { deleted: ID }]);
    expect(result.stderr).toContain('may not have it yet: svc is not running on');
  });
});

test('the server is stored even without a sidecar on this machine', async () => {
  const machine = new Machine(recordOf(['npx', 'a-server@1.0.0']), 'needed');
  const answer: Answer = (call) => (call.url.origin === PROXY_URL ? { status: 500 } : machine.answer(call));
  const result = await runCli(home, ['mcp', 'add', 'files', '--', 'npx', 'a-server@1.0.0'], { answer });
  expect([result.code, result.stdout]).toEqual([0, `${ID}\n`]);
  expect(result.stderr).toContain('svc mcp consent files');
});
