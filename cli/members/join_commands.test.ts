import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const ID = '01m7yjbz4dz98vffmftfxp52e5';
const TIME = '2026-01-01T12:00:00.000Z';
const times = { created_at: TIME, expires_at: TIME };
const request = { id: `jrq_${ID}`, email: 'pat@acme.test', display_name: 'Pat', state: 'open', ...times };
const own = { id: `jrq_${ID}`, enterprise_id: `ent_${ID}`, state: 'open', ...times };
const offer = { enterprise_id: `ent_${ID}`, name: 'Acme', email: 'pat@acme.test', request: own };

const answer: Answer = ({ method, url }) => {
  if (method === 'DELETE') return { status: 204 };
  if (method === 'GET') {
    const item = url.pathname === '/v1/join-offers' ? offer : request;
    return { status: 200, body: { items: [item], next_cursor: null } };
  }
  return url.pathname === '/v1/join-requests' ? { status: 201, body: own } : { status: 200, body: request };
};
const run = (...args: string[]) => runCli(home, args, { answer });

test('svc members requests, accept and decline are for admins', async () => {
  expect((await run('members', 'requests')).stdout).toBe(`jrq_${ID}\tpat@acme.test\tPat\topen\t2026-01-01\n`);
  const accepted = await run('members', 'accept', request.id, '--role', 'admin');
  expect(accepted.calls.map(({ method, url, body }) => [`${method} ${url.pathname}`, body])).toEqual([
    [`POST /v1/join-requests/jrq_${ID}/accept`, { role: 'admin' }],
  ]);
  expect(accepted.stdout).toBe('pat@acme.test is a member\n');
  expect((await run('members', 'decline', request.id)).stdout).toBe('declined pat@acme.test\n');
});

test('svc enterprise offers, ask and withdraw are for whoever asks', async () => {
  expect((await run('enterprise', 'offers')).stdout).toBe(`ent_${ID}\tAcme\tpat@acme.test\tjrq_${ID} open\n`);
  const asked = await run('enterprise', 'ask', `ent_${ID}`);
  expect(asked.calls.map(({ body }) => body)).toEqual([{ enterprise_id: `ent_${ID}` }]);
  expect(asked.stdout).toContain('an admin decides until 2026-01-01');
  expect((await run('enterprise', 'withdraw', request.id)).stdout).toBe(`withdrew jrq_${ID}\n`);
});
