import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CERTIFICATE_REFUSED, PLACEHOLDER_UNBOUND } from '../../shared/model/audit_event.ts';
import { type Answer, testContext, TestHome } from '../testing/run_cli.ts';
import { storedEvent } from '../testing/stored_event.ts';
import { endRun } from './end_run.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
  mkdirSync(join(home.path, 'runs'));
});
afterEach(() => home.remove());

const writeRecord = (change: object = {}): string => {
  const record = {
    session_id: 'ses_1',
    had_placeholders: true,
    expected_hosts: null,
    is_counted: false,
    home: home.path,
    control: null,
    json: false,
    quiet: false,
    ...change,
  };
  return home.write(join('runs', '41'), JSON.stringify(record));
};

interface Ended {
  readonly stderr: string;
  readonly calls: readonly string[];
}

/** The end of a run whose sidecar answers the DELETE so, and whose audit log has these events. */
async function end(deleted: ReturnType<Answer>, items: readonly object[] = [], change: object = {}): Promise<Ended> {
  const answer: Answer = ({ method }) =>
    method === 'DELETE' ? deleted : { status: 200, body: { items, next_cursor: null } };
  const { context, calls, stderr } = testContext(home, { answer });
  await endRun(context, writeRecord(change));
  return { stderr: stderr.text, calls: calls.map(({ method, url }) => `${method} ${url.pathname}${url.search}`) };
}

const withReasons = (...reasons: readonly string[]) => ({ status: 200, body: { reasons } });
const hostEvent = (reason: string, more: object = {}) =>
  storedEvent({ 'svc.proxy.upstream.host': 'files.example.com', 'svc.proxy.reason': reason, ...more });
const DELETED = 'DELETE /v1/sandbox-proxy/sessions/ses_1?reasons=true';
const ASKED = expect.stringMatching(/^GET \/v1\/audit-events\?/);

describe('the end of a run', () => {
  test('asks the audit log nothing if no event of the session has a reason for a last line', async () => {
    expect(await end(withReasons())).toEqual({ stderr: '', calls: [DELETED] });
    expect(await end(withReasons('binding_paused', 'answered_locally'))).toEqual({ stderr: '', calls: [DELETED] });
  });

  test.each([
    ['egress_host_not_allowed', {}, 'refused a host that the agent chose: files.example.com (1)'],
    [PLACEHOLDER_UNBOUND, {}, 'bind files.example.com?'],
    ['non_connect_proxy_request', {}, 'plain http to files.example.com was refused'],
    [CERTIFICATE_REFUSED, {}, 'a client refused the certificate of svc at files.example.com'],
    [
      'connect_port_not_allowed',
      { 'svc.proxy.upstream.host': 'files.example.com:8443' },
      'refused a host that the agent chose: files.example.com:8443 (1)',
    ],
  ])('prints the line that is due for %s', async (reason, more, line) => {
    const { stderr, calls } = await end(withReasons('binding_paused', reason), [hostEvent(reason, more)]);
    expect(stderr).toContain(`svc: ${line}`);
    expect(calls).toEqual([DELETED, ASKED]);
  });

  test.each([
    ['says nothing', { status: 204 }],
    ['says something else', { status: 200, body: { reasons: [1] } }],
  ])('asks the audit log if the sidecar %s', async (_, deleted) => {
    const { stderr, calls } = await end(deleted, [hostEvent('egress_host_not_allowed')]);
    expect(stderr).toContain('svc: refused a host');
    expect(calls).toEqual([DELETED, ASKED]);
  });

  test('warns if the session could not be ended, and still asks', async () => {
    const { stderr, calls } = await end({
      status: 500,
      body: { error: { code: 'internal_error', message: 'It failed.' } },
    });
    expect(stderr).toBe('warning: the session could not be ended: It failed. (500 internal_error)\n');
    expect(calls).toEqual([DELETED, ASKED]);
  });

  test('counts the requests of an agent, whatever the reasons are', async () => {
    const { stderr, calls } = await end(withReasons(), [], { is_counted: true });
    expect(stderr).toBe('svc: 0 requests, 0 with a credential, 0 refused; svc audit list --session ses_1\n');
    expect(calls).toEqual([DELETED, ASKED]);
  });

  test('says that a damaged record is one, and calls nothing', async () => {
    const { stderr, calls } = await end(withReasons(), [], { session_id: 1 });
    expect(stderr).toContain('is damaged: the session ends by itself');
    expect(calls).toEqual([]);
  });
});
