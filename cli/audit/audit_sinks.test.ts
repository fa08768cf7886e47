import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const ID = 'snk_01m7yjbz4dz98vffmftfxp52e5';
const AT = '2026-01-01T12:00:00.000Z';
const sink = {
  id: ID,
  kind: 'webhook',
  name: 'siem',
  host: 'siem.example.com',
  types: null,
  created_at: AT,
  delivered_at: null,
  failures: 0,
  failing_since: null,
  next_try_at: null,
  problem: null,
  behind: false,
  dead_letters: 2,
  rejected: 0,
  disabled_at: null,
  disabled_reason: null,
};
const SECRET = 'whsec_bm90LWEtc2VjcmV0';
const created: Answer = () => ({ status: 201, body: { ...sink, signing_secret: SECRET } });
const COMMAND = ['audit', 'sink'];

describe('svc audit sink', () => {
  test('add prints the signing secret alone on stdout', async () => {
    const args = [...COMMAND, 'add', 'siem', 'https://siem.example.com/in', '--type', 'control., sandbox.'];
    const run = await runCli(home, [...args, '--from-beginning'], { answer: created });
    const body = { kind: 'webhook', name: 'siem', url: 'https://siem.example.com/in', from: 'beginning' };
    expect(run.calls).toMatchObject([{ method: 'POST', body: { ...body, types: ['control.', 'sandbox.'] } }]);
    expect(run.stdout).toBe(`${SECRET}\n`);
    expect(run.stderr).toContain('shown only once');
  });

  test('add reads the value of a header from a file, never from an argument', async () => {
    const file = join(home.path, 'header');
    writeFileSync(file, 'Bearer key-1\n');
    const args = [...COMMAND, 'add', 'otel', 'https://otel.example.com/v1/logs', '--kind', 'otlp'];
    const run = await runCli(home, [...args, '--header', 'Authorization', '--header-file', file], { answer: created });
    expect(run.calls).toMatchObject([{ body: { header: { name: 'authorization', value: 'Bearer key-1' } } }]);
  });

  test('add of mail takes a role or a group and no URL', async () => {
    const group = { id: 'grp_01m7yjbz4dz98vffmftfxp52e5', name: 'Payments', members: 1, created_at: AT };
    const answer: Answer = ({ method }) =>
      method === 'GET'
        ? { status: 200, body: { items: [group], next_cursor: null } }
        : { status: 201, body: { ...sink, kind: 'mail', host: 'mail', signing_secret: null } };
    const args = [...COMMAND, 'add', 'approvers', '--kind', 'mail'];
    const byGroup = await runCli(home, [...args, '--to-group', 'payments'], { answer });
    expect(byGroup.calls.at(-1)?.body).toEqual({ kind: 'mail', name: 'approvers', group_id: group.id });
    const byRole = await runCli(home, [...args, '--to-role', 'admin'], { answer });
    expect(byRole.calls.at(-1)?.body).toEqual({ kind: 'mail', name: 'approvers', role: 'admin' });
    const withUrl = await runCli(home, [...args, 'https://mail.example.test'], { answer });
    expect([withUrl.code, withUrl.calls]).toEqual([2, []]);
  });

  test('add sends the fields of a bucket, whose secret key is in no argument', async () => {
    const file = join(home.path, 'key');
    writeFileSync(file, 'secret-key-1\n');
    const url = 'https://s3.example.com/audit';
    const args = [...COMMAND, 'add', 'archive', url, '--kind', 's3', '--region', 'eu-central-1'];
    const key = ['--access-key-id', 'AKIA1', '--secret-key-file', file];
    const run = await runCli(home, [...args, ...key], { answer: created });
    const fields = { region: 'eu-central-1', access_key_id: 'AKIA1', secret_access_key: 'secret-key-1' };
    expect(run.calls).toMatchObject([{ body: { kind: 's3', url, ...fields } }]);
    expect(await runCli(home, args, { answer: created })).toMatchObject({ code: 2, calls: [] });
  });

  test('add says of a receiver of syslog how it closes', async () => {
    const args = [...COMMAND, 'add', 'logs', 'syslog+tls://logs.example.com', '--kind', 'syslog'];
    const [strict, plain] = [
      await runCli(home, args, { answer: created }),
      await runCli(home, [...args, '--plain-close'], { answer: created }),
    ];
    const body = { kind: 'syslog', name: 'logs', url: 'syslog+tls://logs.example.com' };
    expect([strict.calls[0]?.body, plain.calls[0]?.body]).toEqual([body, { ...body, accepts_plain_close: true }]);
  });

  test.each([
    [['add', 'siem'], 'give one URL'],
    [['add', 'siem', 'https://x.example.com', '--url-stdin'], 'give one URL'],
    [['add', 'siem', 'https://x.example.com', '--header-file', 'x'], 'has no header'],
  ])('%s is refused', async (args, why) => {
    const run = await runCli(home, [...COMMAND, ...args], { answer: created });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain(why);
  });

  test.each([
    [{}, 'up to date'],
    [{ behind: true }, 'sending'],
    [{ behind: true, failures: 2, problem: 'status_503' }, 'failing (status_503)'],
    [{ disabled_reason: 'gone', problem: 'status_410', disabled_at: AT }, 'disabled (gone: status_410)'],
  ])('list tells how sending goes: %j', async (fields, state) => {
    const answer = () => ({ status: 200, body: { items: [{ ...sink, ...fields }] } });
    const run = await runCli(home, [...COMMAND, 'list'], { answer });
    expect(run.stdout).toBe(`${ID}\tsiem\twebhook\tsiem.example.com\t${state}\t2\n`);
  });

  test.each([
    ['remove', { status: 204 }, 'DELETE', '', `removed ${ID}`],
    ['rotate', { status: 200, body: { signing_secret: SECRET, previous_until: AT } }, 'POST', '/rotate', SECRET],
    ['enable', { status: 200, body: sink }, 'POST', '/enable', `${ID} goes on with the next events`],
    ['replay', { status: 200, body: { waiting: 2 } }, 'POST', '/replay', 'sent again with the next delivery: 2'],
  ])('%s calls the API', async (command, reply, method, path, printed) => {
    const run = await runCli(home, [...COMMAND, command, ID], { answer: () => reply });
    expect(run.calls.map((call) => `${call.method} ${call.url.pathname}`)).toEqual([
      `${method} /v1/audit-sinks/${ID}${path}`,
    ]);
    expect(run.stdout).toBe(`${printed}\n`);
  });

  test('dead-letters lists refused events', async () => {
    const letter = {
      event_id: 'evt_1',
      problem: 'status_400',
      failed_at: AT,
      attempts: 1,
      waiting: false,
      recipients: ['usr_1'],
    };
    const answer = () => ({ status: 200, body: { items: [letter], next_cursor: null } });
    const run = await runCli(home, [...COMMAND, 'dead-letters', ID], { answer });
    expect(run.stdout).toBe(`evt_1\tstatus_400\tusr_1\t${AT}\t1\tkept\n`);
  });
});
