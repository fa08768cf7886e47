import { CompactSign, exportJWK, generateKeyPair } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { auditHeadsCheck } from '../../shared/wire/audit_heads.ts';
import { runCli, TestHome, type Answer } from '../testing/run_cli.ts';

const PLANE = 'cpl_00000000000000000000000001';
const ENTERPRISE = 'ent_00000000000000000000000001';
const WRITER = 'sdc_00000000000000000000000001';
const AT = '2026-01-01T11:00:00.000Z';

let home: TestHome;
let pair: Awaited<ReturnType<typeof generateKeyPair>>;
beforeEach(async () => {
  home = new TestHome();
  pair = await generateKeyPair('Ed25519', { extractable: true });
});
afterEach(() => home.remove());

const head = (sequence: number) => ({ writer: WRITER, sequence, hash: String(sequence).padStart(64, '0') });

async function signHead(sequence: number, key = pair.privateKey, typ = 'svc-audit-head+jws'): Promise<string> {
  const payload = { ...head(sequence), control_plane_id: PLANE, enterprise_id: ENTERPRISE, taken_at: AT };
  return new CompactSign(new TextEncoder().encode(JSON.stringify(payload)))
    .setProtectedHeader({ alg: 'EdDSA', typ })
    .sign(key);
}

/** A control plane whose log ends at event 5. */
async function plane(): Promise<Answer> {
  const { x = '' } = await exportJWK(pair.publicKey);
  const heads = {
    control_plane_id: PLANE,
    control_plane_key: { kty: 'OKP', crv: 'Ed25519', x },
    enterprise_id: ENTERPRISE,
    taken_at: AT,
    heads: [{ ...head(5), signed: await signHead(5) }],
  };
  return ({ url, body }) => {
    if (url.pathname === '/v1/audit-events/heads') return { status: 200, body: heads };
    if (url.pathname === '/v1/audit-events/verify') {
      return { status: 200, body: { ok: true, events: 5, removed: 0, writers: 2, chains: [], first_break: null } };
    }
    const asked = auditHeadsCheck.parse(body).heads;
    const stood = asked.map((each) => ({
      ...each,
      standing: each.sequence > 5 ? ('behind' as const) : ('kept' as const),
    }));
    return { status: 200, body: { ok: stood.every(({ standing }) => standing === 'kept'), heads: stood } };
  };
}

const against = async (text: string, ...flags: string[]) => {
  const file = home.write('heads.txt', text);
  return runCli(home, ['audit', 'verify', '--against', file, ...flags], { answer: await plane() });
};

describe('svc audit heads', () => {
  test('prints one line per head, ending with a signature that can be verified later', async () => {
    const run = await runCli(home, ['audit', 'heads'], { answer: await plane() });
    expect(run.stdout.split('\t').slice(0, 4)).toEqual([AT, WRITER, '5', head(5).hash]);
    expect(await against(run.stdout)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('ok: the log contains'),
    });
    const json = await runCli(home, ['audit', 'heads', '--json'], { answer: await plane() });
    expect(await against(json.stdout)).toMatchObject({ code: 0 });
  });
});

describe('svc audit verify --against', () => {
  test('finds signed heads in any text, such as a log', async () => {
    const log = `{"message":"audit head","head":"${await signHead(4)}"}\nnoise ${await signHead(5)} noise\n`;
    const run = await against(log, '--json');
    expect(run.code).toBe(0);
    expect(JSON.parse(run.stdout)).toMatchObject({
      ok: true,
      against: { ok: true, unsigned: 0, heads: [{ sequence: 4, standing: 'kept', taken_at: AT }, { sequence: 5 }] },
    });
  });

  test('exits with 1 if the log ends before one of the heads, even if every chain verifies', async () => {
    const run = await against(`${await signHead(4)}\n${await signHead(9)}\n`);
    expect(run).toMatchObject({ code: 1, stdout: expect.stringContaining(`broken\tbehind: event 9 of ${WRITER}`) });
  });

  test('exits with 1 if a head has a foreign signature', async () => {
    const other = await generateKeyPair('Ed25519', { extractable: true });
    const run = await against(`${await signHead(4)}\n${await signHead(5, other.privateKey)}\n`);
    expect(run).toMatchObject({ code: 1, stdout: expect.stringContaining('1 heads in') });
  });

  test('refuses a file without heads, and tokens signed for another purpose', async () => {
    for (const text of ['nothing', await signHead(4, pair.privateKey, 'svc-events+jws')]) {
      expect(await against(text)).toMatchObject({ code: 2, stderr: expect.stringContaining('no signed head') });
    }
  });
});

const health = (mismatches: readonly object[]) => ({
  status: 'degraded',
  version: '4.0.0',
  snapshot: null,
  spool: { bytes: 0, events: 0 },
  channel: { state: 'up', last_error: null },
  audit_log: { remembers: true, mismatches },
  sessions: 0,
});

describe('svc audit accept', () => {
  const mismatch = { writer: WRITER, standing: 'behind', remembered: { sequence: 9, hash: head(9).hash }, found: null };
  const answer: Answer = ({ method }) =>
    method === 'GET' ? { status: 200, body: health([{ ...mismatch, noticed_at: AT }]) } : { status: 204 };

  test('shows each rollback, and accepts only what was confirmed', async () => {
    const run = await runCli(home, ['audit', 'accept'], { answer, stdin: 'y\n' });
    expect(run).toMatchObject({ code: 0, stderr: expect.stringContaining(`event 9 (${head(9).hash})`) });
    const [accepted] = run.calls.filter(({ method }) => method === 'POST');
    expect(accepted?.url.pathname).toBe('/v1/audit-log/accept');
    expect(z.unknown().parse(accepted?.body)).toEqual(head(9));
  });

  test('accepts nothing but what it shows of a reply with more fields', async () => {
    const more = { ...mismatch, remembered: { ...mismatch.remembered, writer: 'another', more: 1 }, noticed_at: AT };
    const run = await runCli(home, ['audit', 'accept', '--json'], {
      answer: ({ method }) => (method === 'GET' ? { status: 200, body: health([more]) } : { status: 204 }),
      stdin: 'y\n',
    });
    expect(run.calls.find(({ method }) => method === 'POST')?.body).toEqual(head(9));
    expect(JSON.parse(run.stdout)).toEqual({ accepted: [{ ...mismatch, noticed_at: AT }] });
  });

  test.each(['n\n', ''])('does not take %j for a confirmation', async (stdin) => {
    const run = await runCli(home, ['audit', 'accept'], { answer, stdin });
    expect(run.code).toBe(1);
    expect(run.calls.filter(({ method }) => method === 'POST')).toEqual([]);
  });

  test('says that nothing was rolled back', async () => {
    const run = await runCli(home, ['audit', 'accept'], { answer: () => ({ status: 200, body: health([]) }) });
    expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining('has not seen the audit log roll back') });
  });
});
