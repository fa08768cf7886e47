import { CompactSign, exportJWK, generateKeyPair } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sha256Hex } from '../../machine/sha256.ts';
import { chainEvents, EMPTY_CHAIN } from '../../shared/audit/hash_chain.ts';
import type { AuditEvent } from '../../shared/model/audit_event.ts';
import { runCli, TestHome, type Answer } from '../testing/run_cli.ts';

const PLANE = 'cpl_00000000000000000000000001';
const ENTERPRISE = 'ent_00000000000000000000000001';
const WRITER = 'sdc_00000000000000000000000001';
const AT = '2026-01-01T11:00:00.000Z';
/** More than one page. */
const EVENTS = 1_203;

let home: TestHome;
let pair: Awaited<ReturnType<typeof generateKeyPair>>;
let chained: ReturnType<typeof chainEvents>['chained'];
beforeEach(async () => {
  home = new TestHome();
  pair = await generateKeyPair('Ed25519', { extractable: true });
  const events = Array.from({ length: EVENTS }, (_, index): AuditEvent => ({
    id: `evt_${String(index).padStart(26, '0')}`,
    type: 'sandbox.proxy.passthrough',
    time: AT,
    sidecar_id: WRITER,
    session_id: null,
    actor: 'session',
    data: {},
  }));
  ({ chained } = chainEvents(events, { writer: WRITER, receivedAt: AT, head: EMPTY_CHAIN }, sha256Hex));
});
afterEach(() => home.remove());

const publicX = async () => (await exportJWK(pair.publicKey)).x ?? '';

async function statement(typ = 'svc-audit-statement+jws') {
  const { hash = '' } = chained.at(-1) ?? {};
  const chain = { writer: WRITER, sequence: EVENTS, hash, beginning: EMPTY_CHAIN };
  const payload = { control_plane_id: PLANE, enterprise_id: ENTERPRISE, taken_at: AT, chains: [chain] };
  const signed = await new CompactSign(new TextEncoder().encode(JSON.stringify(payload)))
    .setProtectedHeader({ alg: 'EdDSA', typ })
    .sign(pair.privateKey);
  return { control_plane_key: { kty: 'OKP', crv: 'Ed25519', x: await publicX() }, signed };
}

/** A control plane whose log has lost the events that `keeps` does not keep. */
async function plane(keeps: (sequence: number) => boolean = () => true): Promise<Answer> {
  const stated = await statement();
  return ({ url }) => {
    if (url.pathname === '/v1/audit-events/statement') return { status: 200, body: stated };
    const [after, limit] = ['after', 'limit'].map((name) => Number(url.searchParams.get(name)));
    const items = chained.filter(({ sequence }) => sequence > (after ?? 0) && keeps(sequence)).slice(0, limit);
    return { status: 200, body: { items } };
  };
}

async function exported(): Promise<string> {
  return (await runCli(home, ['audit', 'export'], { answer: await plane() })).stdout;
}

const verify = (text: string, ...flags: string[]) =>
  runCli(home, ['audit', 'verify', '--file', home.write('audit.ndjson', text), ...flags]);

describe('svc audit export', () => {
  test('writes the statement and every event of every page, which verifies without a call', async () => {
    const run = await runCli(home, ['audit', 'export'], { answer: await plane() });
    expect([run.code, run.stdout.trimEnd().split('\n').length]).toEqual([0, EVENTS + 1]);
    expect(run.stderr).toContain(`exported ${EVENTS} events in 1 chain`);
    const checked = await verify(run.stdout, '--key', await publicX());
    expect(checked).toMatchObject({ code: 0, calls: [], stderr: '' });
    expect(checked.stdout).toBe(`ok: ${EVENTS} events in 1 chain, as of ${AT}\n`);
  });

  test('fails if the log has not every event that its statement names', async () => {
    const run = await runCli(home, ['audit', 'export'], { answer: await plane((sequence) => sequence !== 700) });
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('missing_event at event 700')]);
    const cut = await runCli(home, ['audit', 'export'], { answer: await plane((sequence) => sequence < 600) });
    expect([cut.code, cut.stderr]).toEqual([1, expect.stringContaining('missing_event at event 600')]);
  });
});

describe('svc audit verify --file', () => {
  test('says where a file was changed, cut, or put together', async () => {
    const lines = (await exported()).trimEnd().split('\n');
    const changed = lines.map((line, at) => (at === 9 ? line.replace('"session"', '"nobody"') : line));
    const results: string[] = [];
    for (const each of [changed, lines.slice(0, -1), lines.toSpliced(5, 1), lines.toSpliced(3, 0, lines[7] ?? '')]) {
      results.push((await verify(each.join('\n'), '--key', await publicX())).stdout);
    }
    expect(results).toEqual([
      `broken\twrong_hash at event 9 of ${WRITER}\n`,
      `broken\tmissing_event at event ${EVENTS} of ${WRITER}\n`,
      `broken\tmissing_event at event 5 of ${WRITER}\n`,
      `broken\tmissing_event at event 3 of ${WRITER}\n`,
    ]);
  });

  test('trusts the key that it is given, not the one in the file; without another it says what that proves', async () => {
    const text = await exported();
    const other = (await exportJWK((await generateKeyPair('Ed25519', { extractable: true })).publicKey)).x ?? '';
    const foreign = await verify(text, '--key', other);
    expect([foreign.code, foreign.stderr]).toEqual([1, expect.stringContaining('is not signed with the key of --key')]);
    const alone = await verify(text, '--json');
    expect([alone.code, JSON.parse(alone.stdout)]).toMatchObject([0, { ok: true, key: 'file', events: EVENTS }]);
    expect(alone.stderr).toContain('the key in the file');
  });

  test('refuses a signature over something else', async () => {
    const [, ...events] = (await exported()).trimEnd().split('\n');
    const other = { kind: 'audit_statement', ...(await statement('svc-audit-head+jws')) };
    const run = await verify([JSON.stringify(other), ...events].join('\n'), '--key', await publicX());
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('its statement is not signed')]);
  });

  test.each([
    ['', 2, 'has no signed statement'],
    ['{"kind":"audit_event"}', 1, 'line 1 is an event before the statement'],
    ['no json', 1, 'line 1 is no JSON document'],
    ['{"kind":"audit_statement","signed":"x"}', 1, 'its statement cannot be read'],
  ])('says what is wrong with the file %j', async (text, code, problem) => {
    const run = await verify(text);
    expect([run.code, run.stderr]).toEqual([code, expect.stringContaining(problem)]);
  });

  test('refuses two statements, a file that is not there, and flags that do not go together', async () => {
    const text = await exported();
    expect((await verify(text + text)).stderr).toContain(`line ${EVENTS + 2} is a second statement`);
    const gone = await runCli(home, ['audit', 'verify', '--file', 'nowhere']);
    expect([gone.code, gone.stderr]).toEqual([2, expect.stringContaining('cannot be read: it does not exist')]);
    const both = await runCli(home, ['audit', 'verify', '--file', 'a', '--against', 'b']);
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('use --file or --against')]);
    const short = await verify(text, '--key', 'short');
    expect([short.code, short.stderr]).toEqual([2, expect.stringContaining('43 characters')]);
  });
});
