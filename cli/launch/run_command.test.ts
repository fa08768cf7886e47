import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { identify } from '../../machine/process_identity.ts';
import { HOST_TOKEN, LOCAL_KEY, runCli, TestHome, type Answer, type SeenCall } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const SESSION = {
  session_id: 'ses_1',
  token: 'svc_session_t',
  expires_at: '2026-01-02T00:00:00.000Z',
  proxy_url: 'http://ses_1:svc_session_t@127.0.0.1:7421',
  ca_pem_path: '/s/ca.pem',
  ca_bundle_path: '/s/bundle.pem',
  sentinels: [{ env: 'DEMO_TOKEN', value: 'placeholder' }],
};
const ME = {
  id: 'usr_01m7yjbx7ew79r4fq8xxezcbp1',
  enterprise_id: 'ent_01m7yjbx7e82g443zkn66jbwfz',
  email: null,
  display_name: 'Local owner',
  role: 'admin',
  policy_version: 7,
  created_at: '2026-01-01T00:00:00.000Z',
};
const both: Answer = ({ method, url }) => {
  if (url.pathname === '/v1/me') return { status: 200, body: ME };
  return method === 'POST' ? { status: 201, body: SESSION } : { status: 204 };
};

/** What the command wrote: its output goes to our own stdout, which a test does not see. */
const seen = (script: string): string[] => ['run', '--', '/bin/sh', '-c', script];
const said = (calls: readonly SeenCall[]): string[] => calls.map((call) => `${call.method} ${call.url.pathname}`);

const controlAway: Answer = (call) => {
  if (call.url.port === '7420') throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } });
  return both(call);
};

describe('svc run', () => {
  test('opens a session with the newest policy, runs the command in it, and ends it', async () => {
    const script = 'printf "%s %s" "$https_proxy" "$DEMO_TOKEN" > out; exit 5';
    const run = await runCli(home, seen(script), { answer: both });
    expect(run.code).toBe(5);
    expect(said(run.calls)).toEqual([
      'GET /v1/me',
      'POST /v1/sandbox-proxy/sessions',
      'DELETE /v1/sandbox-proxy/sessions/ses_1',
    ]);
    expect(run.calls[1]?.body).toEqual({ min_policy_version: 7, owner: identify(process.pid) });
    expect(readFileSync(join(home.path, 'out'), 'utf8')).toBe(`${SESSION.proxy_url} placeholder`);
  });

  test('each server gets its own token: the local key the control plane, the host token the sidecar', async () => {
    const run = await runCli(home, seen('true'), { answer: both });
    expect(run.calls.map((call) => [call.url.port, call.authorization])).toEqual([
      ['7420', `Bearer ${LOCAL_KEY}`],
      ['7421', `Bearer ${HOST_TOKEN}`],
      ['7421', `Bearer ${HOST_TOKEN}`],
    ]);
  });

  test('neither the keys nor our settings are in the environment of the command', async () => {
    const env = {
      SVC_VAULT_KEY: 'q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k',
      CODEHOST_OAUTH_CLIENT_SECRET: 'planted',
    };
    await runCli(home, seen('env > out'), { answer: both, env });
    const text = readFileSync(join(home.path, 'out'), 'utf8');
    for (const secret of [LOCAL_KEY, HOST_TOKEN, env.SVC_VAULT_KEY, 'planted', 'SVC_HOME']) {
      expect(text).not.toContain(secret);
    }
  });

  test('the command gets the address and the token of the session for the daemon’s own API', async () => {
    await runCli(home, seen('printf "%s %s" "$SVC_URL" "$SVC_TOKEN" > out'), { answer: both });
    expect(readFileSync(join(home.path, 'out'), 'utf8')).toBe('http://127.0.0.1:7421 svc_session_t');
  });

  test('names the MCP servers that the command may use', async () => {
    const run = await runCli(home, ['run', '--mcp', 'files', '--mcp=mcp_1', '--', '/bin/true'], { answer: both });
    expect(run.calls[1]?.body).toMatchObject({ mcp_servers: ['files', 'mcp_1'] });
    const odd = await runCli(home, ['run', '--mcp', 'Files', '--', '/bin/true'], { answer: both });
    expect(odd).toMatchObject({ code: 125, calls: [] });
  });

  test('a relay that cannot be opened ends the session, and the command is not started', async () => {
    const run = await runCli(home, ['run', '--relay', '--', '/bin/sh', '-c', 'echo > out'], { answer: both });
    expect(run.code).toBe(125);
    expect(run.stderr).toContain('--relay: the relay could not be prepared');
    expect(said(run.calls)).toContain('DELETE /v1/sandbox-proxy/sessions/ses_1');
    expect(existsSync(join(home.path, 'out'))).toBe(false);
  });

  test('options after -- are the command’s own', async () => {
    const run = await runCli(home, ['run', '--name', 'n', '--', '/bin/sh', '-c', 'echo "$1" > out', 'sh', '--name'], {
      answer: both,
    });
    expect(run.calls[1]?.body).toMatchObject({ name: 'n' });
    expect(readFileSync(join(home.path, 'out'), 'utf8')).toBe('--name\n');
  });

  test('options after the command are its own also without --', async () => {
    const argv = ['run', '/bin/sh', '-c', 'echo "$1" > out', 'sh', '--json'];
    expect((await runCli(home, argv, { answer: both })).code).toBe(0);
    expect(readFileSync(join(home.path, 'out'), 'utf8')).toBe('--json\n');
  });

  test('the session is ended also when the command is not found', async () => {
    const run = await runCli(home, ['run', '--', 'no-such-command-here'], { answer: both });
    expect(run.code).toBe(127);
    expect(run.stderr).toContain('"no-such-command-here": not found');
    expect(said(run.calls).at(-1)).toBe('DELETE /v1/sandbox-proxy/sessions/ses_1');
  });

  test('goes on with the policy that the sidecar holds while the control plane is away', async () => {
    const run = await runCli(home, seen('true'), { answer: controlAway });
    expect(run.code).toBe(0);
    expect(run.calls.find((call) => call.method === 'POST')?.body).toEqual({ owner: identify(process.pid) });
    expect(run.stderr).toContain('going on with the policy that the sidecar holds');
  });

  test('without a sidecar the command is not started: 125', async () => {
    const run = await runCli(home, seen('echo > out'));
    expect(run.code).toBe(125);
    expect(() => readFileSync(join(home.path, 'out'))).toThrow('ENOENT');
  });

  test('a refused session is 125, with the reason', async () => {
    const error = { code: 'snapshot_expired', message: 'no policy', request_id: 'r' };
    const answer: Answer = (call) => (call.method === 'POST' ? { status: 503, body: { error } } : both(call));
    const run = await runCli(home, seen('true'), { answer });
    expect(run).toMatchObject({ code: 125, stderr: 'svc: no policy (503 snapshot_expired)\n' });
  });

  test('a bad --ttl is refused before anything is asked', async () => {
    const run = await runCli(home, ['run', '--ttl', 'soon', '--', 'true'], { answer: both });
    expect(run).toMatchObject({ code: 125, calls: [] });
    expect(run.stderr).toContain('--ttl');
  });
});
