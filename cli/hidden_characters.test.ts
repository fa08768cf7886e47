import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listHiddenCharacters } from '../shared/model/shown_text.ts';
import { type Answer, runCli, TestHome } from './testing/run_cli.ts';

/** A window title, the clipboard, an OSC 8 link, 8-bit controls, direction marks, tag characters and invisible characters. */
const PLANTED =
  'a\u001b]0;t\u0007b\u001b]52;c;aGk=\u001b\\c\u001b]8;;http://evil.test\u001b\\d\u009b2Je\u202ef\u2066g\u200bh\u{e0041}i\rj\u00a0k\u3164l\ufe0fm\u001b[8mn\u2028o';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

/** The output to a terminal without this program's own styles. */
function unstyled(text: string): string {
  return text.replaceAll(new RegExp(`${String.fromCharCode(27)}\\[(?:0|1|2|31|32|33|36)m`, 'g'), '');
}

const answerRefusal: Answer = () => ({
  status: 500,
  body: { error: { code: PLANTED, message: PLANTED, request_id: PLANTED } },
});

const time = '2026-01-01T11:59:00.000Z';
const ID = 'm7yjbz4dz98vffmftfxp52e5';
const approval = {
  id: `apr_01${ID}`,
  state: 'pending',
  connector_id: `con_01${ID}`,
  connector_fqn: 'catalog/github',
  connector_version: '1.0.0',
  owner: 'personal',
  operation: PLANTED,
  summary: PLANTED,
  fingerprint: 'a'.repeat(64),
  user_id: `usr_01${ID}`,
  sidecar_id: null,
  session_id: PLANTED,
  requested_at: time,
  expires_at: '2026-01-01T12:59:00.000Z',
  decided_by: PLANTED,
  decided_at: null,
  valid_until: null,
  used_at: null,
};
const event = {
  id: `evt_01${ID}`,
  type: 'sandbox.proxy.credential_unsealed',
  time,
  sidecar_id: `sdc_01${ID}`,
  session_id: PLANTED,
  actor: PLANTED,
  data: { 'svc.proxy.credential_ref': PLANTED, 'svc.proxy.reason': PLANTED, 'svc.proxy.upstream.host': PLANTED },
  writer: `sdc_01${ID}`,
  sequence: 1,
  previous_hash: '0'.repeat(64),
  hash: 'a'.repeat(64),
  received_at: time,
};
const secret = {
  id: `sec_01${ID}`,
  path: 'user/one',
  ref: 'vault://user/one',
  owner: 'personal',
  description: PLANTED,
  version: 1,
  created_at: time,
  updated_at: time,
};

const page =
  (item: unknown): Answer =>
  () => ({ status: 200, body: { items: [item], next_cursor: null } });

describe.each([
  ['approvals list', ['approvals', 'list'], page(approval)],
  ['approvals show', ['approvals', 'show', approval.id], () => ({ status: 200, body: approval })],
  ['audit list', ['audit', 'list'], page(event)],
  ['secret list', ['secret', 'list'], page(secret)],
  ['api', ['api', 'GET', '/v1/secrets'], () => ({ status: 200, body: PLANTED })],
] satisfies readonly (readonly [string, readonly string[], Answer])[])('svc %s', (_name, argv, answer) => {
  test.each([
    ['as text', []],
    ['as JSON', ['--json']],
  ])('sends no hidden or control characters to a terminal: %s', async (_what, flags) => {
    const isRaw = argv[0] === 'api';
    const run = await runCli(home, isRaw ? argv : [...argv, ...flags], { answer, terminal: true });
    expect(listHiddenCharacters(unstyled(run.stdout))).toEqual([]);
    expect(listHiddenCharacters(unstyled(run.stderr))).toEqual([]);
    expect([run.code, run.stdout]).toEqual([0, expect.stringMatching(/evil|52;c/)]);
  });
});

test.each([
  ['approvals', 'list'],
  ['audit', 'list'],
  ['secret', 'list'],
  ['mcp', 'list'],
  ['connector', 'list'],
])('an error of svc %s %s sends no control characters to a terminal', async (...argv) => {
  const run = await runCli(home, argv, { answer: answerRefusal, terminal: true });
  expect(run.code).not.toBe(0);
  expect(run.stderr).toContain('evil.test');
  expect(listHiddenCharacters(unstyled(run.stderr))).toEqual([]);
});

test('JSON output keeps every character of a value', async () => {
  const run = await runCli(home, ['secret', 'list', '--json'], { answer: page(secret) });
  expect(JSON.parse(run.stdout)).toMatchObject({ items: [{ description: PLANTED }] });
});
