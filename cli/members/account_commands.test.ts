import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const ID = '01m7yjbz4dz98vffmftfxp52e5';
const AT = '2026-01-08T12:00:00.000Z';
const SIDECAR = { id: `sdc_${ID}`, name: 'laptop', created_at: AT, last_seen_at: null, revoked_at: AT };
const SIGN_IN = {
  id: `bse_${ID}`,
  kind: 'browser',
  client: 'Firefox',
  created_at: AT,
  last_seen_at: AT,
  expires_at: AT,
  current: true,
};
const IDENTITY = {
  id: `idn_${ID}`,
  provider: 'password',
  title: 'Password',
  issuer: 'svc',
  email: 'pat@acme.test',
  email_verified: true,
  created_at: AT,
  last_used_at: AT,
};

const page =
  (item: object): Answer =>
  () => ({ status: 200, body: { items: [item], next_cursor: null } });

test.each([
  ['sidecars', SIDECAR, `sdc_${ID}\tlaptop\trevoked\tnever\n`],
  ['sign-ins', SIGN_IN, /^\*\tbse_\w+\tbrowser\tFirefox\t.+\t2026-01-08\n$/],
  ['identities', IDENTITY, /^idn_\w+\tPassword\tpat@acme\.test\t.+\n$/],
])('svc account %s list shows each on a line, and with --json as the API has it', async (name, item, line) => {
  const run = await runCli(home, ['account', name, 'list'], { answer: page(item) });
  expect(run.code).toBe(0);
  expect(run.stdout).toMatch(line);
  const json = await runCli(home, ['account', name, 'list', '--json'], { answer: page(item) });
  expect(JSON.parse(json.stdout)).toEqual([item]);
});

test.each([
  ['sidecars', 'revoke', `sdc_${ID}`, '/v1/sidecars'],
  ['sign-ins', 'end', `bse_${ID}`, '/v1/sessions'],
  ['identities', 'remove', `idn_${ID}`, '/v1/identities'],
])('svc account %s %s ends one', async (name, verb, id, path) => {
  const run = await runCli(home, ['account', name, verb, id], { answer: () => ({ status: 204 }) });
  expect([run.code, run.calls.map(({ method, url }) => `${method} ${url.pathname}`)]).toEqual([
    0,
    [`DELETE ${path}/${id}`],
  ]);
});
