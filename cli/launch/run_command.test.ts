import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { identify } from '../../machine/process_identity.ts';
import { HOST_TOKEN, LOCAL_KEY, runCli, TestHome, type Answer, type SeenCall } from '../testing/run_cli.ts';
import { CONNECTOR } from '../testing/connector_samples.ts';
import { ME, SESSION } from '../testing/session_samples.ts';
import { storedEvent } from '../testing/stored_event.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const BINDING = {
  id: 'bnd_01m7yjc1391a5krmyacsgq908t',
  created_at: '2026-01-01T11:59:00.000Z',
  updated_at: '2026-01-01T11:59:00.000Z',
  owner: 'personal',
  host: 'api.example.com',
  credential_ref: 'vault://user/demo',
  scheme: 'bearer',
  emit_mechanism: 'inject',
  allowed_hosts: [],
  body: 'buffer',
};

const both: Answer = ({ method, url }) => {
  if (url.pathname === '/v1/me') return { status: 200, body: ME };
  return method === 'POST' ? { status: 201, body: SESSION } : { status: 204 };
};

/** What the command wrote to a file: its stdout is inherited, so the test cannot see it. */
const shellCommand = (script: string): string[] => ['run', '--', '/bin/sh', '-c', script];
const listCalls = (calls: readonly SeenCall[]): string[] => calls.map((call) => `${call.method} ${call.url.pathname}`);

const controlAway: Answer = (call) => {
  if (call.url.port === '7420') throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } });
  return both(call);
};

const writtenOut = () => readFileSync(join(home.path, 'out'), 'utf8');
const page = (items: readonly object[]) => ({ status: 200, body: { items, next_cursor: null } });
const hostEvent = (host: string, reason: string) =>
  storedEvent({ 'svc.proxy.upstream.host': host, 'svc.proxy.reason': reason });
const bound: Answer = (call) => {
  if (call.url.pathname === '/v1/host-bindings') return page([BINDING]);
  if (call.url.pathname === '/v1/connectors') return page([{ ...CONNECTOR, hosts: ['items.example.com'] }]);
  return both(call);
};

describe('svc run', () => {
  test('opens a session with the newest policy, runs the command, and ends the session', async () => {
    const script = 'printf "%s %s" "$https_proxy" "$DEMO_TOKEN" > out; exit 5';
    const run = await runCli(home, shellCommand(script), { answer: both });
    expect(run.code).toBe(5);
    expect(listCalls(run.calls)).toEqual([
      'GET /v1/me',
      'POST /v1/sandbox-proxy/sessions',
      'DELETE /v1/sandbox-proxy/sessions/ses_1',
      'GET /v1/audit-events',
    ]);
    expect(run.calls[1]?.body).toEqual({ folder: home.path, min_policy_version: 7, owner: identify(process.pid) });
    expect(readFileSync(join(home.path, 'out'), 'utf8')).toBe(`${SESSION.proxy_url} placeholder`);
  });

  test('sends the local key only to the control plane and the host token only to the sidecar', async () => {
    const run = await runCli(home, shellCommand('true'), { answer: both });
    expect(run.calls.map((call) => [call.url.port, call.authorization])).toEqual([
      ['7420', `Bearer ${LOCAL_KEY}`],
      ['7421', `Bearer ${HOST_TOKEN}`],
      ['7421', `Bearer ${HOST_TOKEN}`],
      ['7420', `Bearer ${LOCAL_KEY}`],
    ]);
  });

  describe("and the user's NO_PROXY", () => {
    const OWN = 'localhost,127.0.0.1,::1';
    const script = shellCommand('printf "%s %s" "$NO_PROXY" "$no_proxy" > out');
    test('keeps what covers no bound host, and names the rest', async () => {
      const env = { no_proxy: `${OWN},.corp.test,example.com,items.example.com,10.0.0.0/8` };
      const run = await runCli(home, script, { answer: bound, env });
      expect(writtenOut()).toBe(`${OWN},.corp.test,10.0.0.0/8 ${OWN},.corp.test,10.0.0.0/8`);
      expect(run.stderr).toContain('without example.com, items.example.com, which may cover a bound host');
    });

    test('asks nothing without entries of its own', async () => {
      const run = await runCli(home, script, { answer: bound, env: { NO_PROXY: OWN } });
      expect(listCalls(run.calls)).not.toContain('GET /v1/host-bindings');
      expect(writtenOut()).toBe(`${OWN} ${OWN}`);
    });

    test('keeps nothing if the bound hosts are not known, and says so', async () => {
      const run = await runCli(home, script, { answer: controlAway, env: { NO_PROXY: '.corp.test' } });
      expect(writtenOut()).toBe(`${OWN} ${OWN}`);
      expect(run.stderr).toContain('NO_PROXY is not passed on');
    });

    test('opens no session if the control plane refuses to list the bound hosts', async () => {
      const error = { code: 'internal_error', message: 'it failed', request_id: 'req_1' };
      const refused: Answer = (call) =>
        call.url.pathname === '/v1/host-bindings' ? { status: 500, body: { error } } : bound(call);
      const run = await runCli(home, script, { answer: refused, env: { NO_PROXY: '.corp.test' } });
      expect(run.code).toBe(125);
      expect(listCalls(run.calls)).not.toContain('POST /v1/sandbox-proxy/sessions');
    });

    test('keeps nothing where only some hosts are allowed', async () => {
      const limited = ['run', '--allow-only', 'api.other.test', ...script.slice(1)];
      await runCli(home, limited, { answer: bound, env: { NO_PROXY: '.corp.test' } });
      expect(writtenOut()).toBe(`${OWN} ${OWN}`);
    });
  });

  test("keeps keys and settings out of the command's environment", async () => {
    const env = {
      SVC_VAULT_KEY: 'q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k',
      CODEHOST_OAUTH_CLIENT_SECRET: 'planted',
    };
    await runCli(home, shellCommand('env > out'), { answer: both, env });
    const text = readFileSync(join(home.path, 'out'), 'utf8');
    for (const secret of [LOCAL_KEY, HOST_TOKEN, env.SVC_VAULT_KEY, 'planted', 'SVC_HOME']) {
      expect(text).not.toContain(secret);
    }
  });

  test('gives the command the address and the session token for the local API', async () => {
    await runCli(home, shellCommand('printf "%s %s" "$SVC_URL" "$SVC_TOKEN" > out'), { answer: both });
    expect(readFileSync(join(home.path, 'out'), 'utf8')).toBe('http://127.0.0.1:7421 svc_session_t');
  });

  test('passes the MCP servers that the command may use', async () => {
    const run = await runCli(home, ['run', '--mcp', 'files', '--mcp=mcp_1', '--', '/bin/true'], { answer: both });
    expect(run.calls[1]?.body).toMatchObject({ mcp_servers: ['files', 'mcp_1'] });
    const odd = await runCli(home, ['run', '--mcp', 'Files', '--', '/bin/true'], { answer: both });
    expect(odd).toMatchObject({ code: 125, calls: [] });
    const none = await runCli(home, ['run', '--', '/bin/true'], { answer: both });
    expect(Object.keys(none.calls[1]?.body ?? {}).filter((name) => name.includes('mcp'))).toEqual([]);
  });

  test('ends the session and does not start the command if the relay cannot be opened', async () => {
    const run = await runCli(home, ['run', '--relay', '--', '/bin/sh', '-c', 'echo > out'], { answer: both });
    expect(run.code).toBe(125);
    expect(run.stderr).toContain('--relay: the relay could not be prepared');
    expect(listCalls(run.calls)).toContain('DELETE /v1/sandbox-proxy/sessions/ses_1');
    expect(existsSync(join(home.path, 'out'))).toBe(false);
  });

  test('--allow-only gives the session a list, with the hosts of the folder', async () => {
    home.write('allowed_hosts.json', JSON.stringify({ version: 1, folders: { '/': ['b.test'] } }));
    const argv = ['run', '--allow-only', 'A.test', '--allow-only=*.c.test', '--', '/bin/true'];
    const run = await runCli(home, argv, { answer: both });
    expect(run.code).toBe(0);
    expect(run.calls[1]?.body).toMatchObject({ allowed_hosts: ['*.c.test', 'b.test'], named_hosts: ['a.test'] });
    const odd = await runCli(home, ['run', '--allow-only', '*', '--', '/bin/true'], { answer: both });
    expect(odd).toMatchObject({ code: 125, calls: [] });
  });

  test('--plain-http gives the session a list of its own, with the hosts of the folder', async () => {
    home.write('allowed_hosts.json', JSON.stringify({ version: 1, folders: { '/': ['b.test', 'http://b.test'] } }));
    const argv = ['run', '--plain-http', 'A.test', '--plain-http=*.c.test', '--', '/bin/true'];
    const run = await runCli(home, argv, { answer: both });
    expect(run.code).toBe(0);
    expect(run.calls[1]?.body).toMatchObject({
      plain_http_hosts: ['*.c.test', 'b.test'],
      plain_http_named: ['a.test'],
    });
    expect(run.calls[1]?.body).not.toHaveProperty('allowed_hosts');
    const limited = await runCli(home, ['run', '--allow-only', 'a.test', '--', '/bin/true'], { answer: both });
    expect(limited.calls[1]?.body).toMatchObject({
      allowed_hosts: ['b.test'],
      named_hosts: ['a.test'],
      plain_http_hosts: ['b.test'],
      plain_http_named: [],
    });
    for (const wrong of ['*', '10.0.0.1', 'a.test:8080', 'http://a.test']) {
      const odd = await runCli(home, ['run', '--plain-http', wrong, '--', '/bin/true'], { answer: both });
      expect(odd).toMatchObject({ code: 125, calls: [] });
      expect(odd.stderr).toContain('--plain-http is ');
    }
  });

  test('sends no list for plain http if there is none, which an older sidecar would refuse', async () => {
    const run = await runCli(home, ['run', '--', '/bin/true'], { answer: both });
    expect(run.calls[1]?.body).not.toHaveProperty('plain_http_hosts');
  });

  test('--allow gives the session hosts at other ports, with those of the folder, and no list', async () => {
    home.write('allowed_hosts.json', JSON.stringify({ version: 1, folders: { '/': ['b.test', '*.b.test:8443'] } }));
    const argv = ['run', '--allow', 'A.test:8443', '--allow=*.c.test:9443', '--', '/bin/true'];
    const run = await runCli(home, argv, { answer: both });
    expect(run.code).toBe(0);
    const ports = { other_port_hosts: ['*.c.test:9443', '*.b.test:8443'], other_port_named: ['a.test:8443'] };
    expect(run.calls[1]?.body).toMatchObject(ports);
    expect(run.calls[1]?.body).not.toHaveProperty('allowed_hosts');
    for (const wrong of ['a.test', 'a.test:443', 'a.test:80', '10.0.0.1:8443', 'a.test:']) {
      const odd = await runCli(home, ['run', '--allow', wrong, '--', '/bin/true'], { answer: both });
      expect(odd).toMatchObject({ code: 125, calls: [] });
      expect(odd.stderr).toContain('--allow ');
    }
    home.write('allowed_hosts.json', JSON.stringify({ version: 1, folders: { '/': ['b.test', 'http://b.test'] } }));
    const none = await runCli(home, ['run', '--', '/bin/true'], { answer: both });
    expect(none.calls[1]?.body).not.toHaveProperty('other_port_hosts');
  });

  test('names at the end what --allow-only refused, and what a client refused, after one request', async () => {
    const items = [hostEvent('x.test', 'egress_host_not_allowed'), hostEvent('y.test', 'client_refused_certificate')];
    const answer: Answer = (call) => (call.url.pathname === '/v1/audit-events' ? page(items) : both(call));
    const run = await runCli(home, ['run', '--allow-only=a.test', '--', '/bin/true'], { answer });
    expect(run.stderr).toContain(
      `svc: refused a host that the agent chose: x.test (1). To allow some of them here: svc allow --from-session ses_1 --folder ${home.path}\nsvc: a client refused the certificate of svc at y.test.`,
    );
    const types = run.calls.flatMap(({ url }) => url.searchParams.getAll('type'));
    expect(types.filter((type) => type.includes('rejected'))).toEqual([
      'sandbox.proxy.trust_denied,sandbox.proxy.rejected,sandbox.proxy.passthrough',
    ]);
  });

  test('names at the end the ports and the plain http that were refused, also without --allow-only', async () => {
    const items = [
      hostEvent('git.test:8443', 'connect_port_not_allowed'),
      hostEvent('deb.test', 'non_connect_proxy_request'),
    ];
    const answer: Answer = (call) => (call.url.pathname === '/v1/audit-events' ? page(items) : both(call));
    const run = await runCli(home, ['run', '--', '/bin/true'], { answer });
    expect(run.stderr).toContain('svc: refused a host that the agent chose: git.test:8443 (1). To allow');
    expect(run.stderr).toContain('svc: plain http to deb.test was refused.');
  });

  test.each(['sealed', 'sealed,public'])('refuses --egress=%s, which needs a sandbox', async (egress) => {
    const run = await runCli(home, ['run', `--egress=${egress}`, '--', '/bin/sh', '-c', 'echo > out'], {
      answer: both,
    });
    expect(run.code).toBe(125);
    expect(run.stderr).toMatch(
      /needs a sandbox(.|\n)*svc run --sandbox(.|\n)*svc launch --egress=sealed(.|\n)*--allow-only HOST/,
    );
    expect(run.calls.filter(({ method }) => method === 'POST')).toEqual([]);
    expect(existsSync(join(home.path, 'out'))).toBe(false);
  });

  test('options after -- belong to the command', async () => {
    const run = await runCli(home, ['run', '--name', 'n', '--', '/bin/sh', '-c', 'echo "$1" > out', 'sh', '--name'], {
      answer: both,
    });
    expect(run.calls[1]?.body).toMatchObject({ name: 'n' });
    expect(readFileSync(join(home.path, 'out'), 'utf8')).toBe('--name\n');
  });

  test('options after the command belong to it, even without --', async () => {
    const argv = ['run', '/bin/sh', '-c', 'echo "$1" > out', 'sh', '--json'];
    expect((await runCli(home, argv, { answer: both })).code).toBe(0);
    expect(readFileSync(join(home.path, 'out'), 'utf8')).toBe('--json\n');
  });

  test('names the agent that a mistyped command most likely means', async () => {
    const run = await runCli(home, ['run', '--', 'cluade'], { answer: both });
    expect([run.code, run.stderr]).toEqual([127, expect.stringContaining('Did you mean the agent claude? svc claude')]);
  });

  test('ends the session if the command is not found', async () => {
    const run = await runCli(home, ['run', '--', 'no-such-command-here'], { answer: both });
    expect(run.code).toBe(127);
    expect(run.stderr).toContain('"no-such-command-here": not found');
    expect(listCalls(run.calls)).toContain('DELETE /v1/sandbox-proxy/sessions/ses_1');
  });

  test("continues with the sidecar's policy if the control plane is away", async () => {
    const run = await runCli(home, shellCommand('true'), { answer: controlAway });
    expect(run.code).toBe(0);
    expect(run.calls.find((call) => call.method === 'POST')?.body).toEqual({
      folder: home.path,
      owner: identify(process.pid),
    });
    expect(run.stderr).toContain('using the policy that the sidecar has');
  });

  test('exits with 125 without a sidecar', async () => {
    const run = await runCli(home, shellCommand('echo > out'));
    expect(run.code).toBe(125);
    expect(() => readFileSync(join(home.path, 'out'))).toThrow('ENOENT');
  });

  test('exits with 125 and the reason if the session is refused', async () => {
    const error = { code: 'snapshot_expired', message: 'no policy', request_id: 'r' };
    const answer: Answer = (call) => (call.method === 'POST' ? { status: 503, body: { error } } : both(call));
    const run = await runCli(home, shellCommand('true'), { answer });
    expect(run).toMatchObject({ code: 125, stderr: 'svc: no policy (503 snapshot_expired)\n' });
  });

  test('refuses an invalid --ttl before any call', async () => {
    const run = await runCli(home, ['run', '--ttl', 'soon', '--', 'true'], { answer: both });
    expect(run).toMatchObject({ code: 125, calls: [] });
    expect(run.stderr).toContain('--ttl');
  });
});
