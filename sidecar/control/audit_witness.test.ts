import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ok } from '../../shared/model/result.ts';
import type { AcknowledgedHead, AuditHead, HeadStanding } from '../../shared/wire/audit_heads.ts';
import { FakeAuditSink, FakeClock } from '../testing/fakes.ts';
import { ScriptedChannel } from '../testing/scripted_channel.ts';
import { AuditWitness } from './audit_witness.ts';
import { Link } from './link.ts';

const OWN = 'sdc_00000000000000000000000001';
const CONTROL = 'ent_00000000000000000000000001';
const PLANE = 'cpl_00000000000000000000000001';
const hash = (n: number) => String(n).padStart(64, '0');
const head = (sequence: number, writer = OWN, of = sequence): AuditHead => ({ writer, sequence, hash: hash(of) });
const acknowledgedHead = (from: number, to: number): AcknowledgedHead => {
  return { ...head(to), previous: { sequence: from, hash: hash(from) } };
};

let directory = '';
let channel: ScriptedChannel;
let sink: FakeAuditSink;
let warnings: string[] = [];
const link = new Link();
const clock = new FakeClock();
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-witness-'));
  channel = new ScriptedChannel(clock, link);
  sink = new FakeAuditSink();
  warnings = [];
});
afterEach(() => rmSync(directory, { recursive: true }));

const start = (controlPlaneId = PLANE) =>
  new AuditWitness({
    directory,
    controlPlaneId,
    channel,
    link,
    clock,
    record: (event) => sink.record(event),
    warn: (message) => warnings.push(message),
  });

/** The control plane's log: the ends of its chains, and the standing it reports for other heads. */
function log(ends: readonly AuditHead[], standing: HeadStanding = 'kept'): void {
  channel.auditAnswer = (known) => ok({ heads: ends, known: known.map((each) => ({ ...each, standing })) });
}

const file = () => join(directory, 'audit_heads.json');
const types = () => sink.events.map(({ type }) => type);

describe('a sidecar that remembers the ends of the audit log', () => {
  it('advances with replies that continue it, without another call', async () => {
    const witness = start();
    witness.noteAcknowledged(acknowledgedHead(0, 3));
    witness.noteAcknowledged(acknowledgedHead(3, 7));
    witness.noteAcknowledged(acknowledgedHead(7, 7));
    await witness.check();
    expect(witness.heads).toEqual([head(7)]);
    expect(witness.mismatches).toEqual([]);
  });

  it('keeps the heads in a private file for the next run', async () => {
    const witness = start();
    log([head(3), head(9, CONTROL)]);
    await witness.check();
    await witness.stop();
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(start().heads).toEqual([head(3), head(9, CONTROL)]);
    expect(start('cpl_00000000000000000000000002').heads).toEqual([]);
  });

  it('accepts a reply that leaves a gap only after the control plane proves that the chain contains the remembered head', async () => {
    const witness = start();
    witness.noteAcknowledged(acknowledgedHead(0, 3));
    log([head(9)]);
    witness.noteAcknowledged(acknowledgedHead(5, 8));
    expect(witness.heads).toEqual([head(3)]);
    await witness.check();
    expect(witness.heads).toEqual([head(9)]);
  });

  it('detects a chain that was rolled back and has since grown past the remembered head', async () => {
    const witness = start();
    witness.noteAcknowledged(acknowledgedHead(0, 10));
    log([head(400)], 'differs');
    witness.noteAcknowledged(acknowledgedHead(5, 400));
    await witness.check();
    expect(witness.heads).toEqual([head(10)]);
    expect(witness.mismatches).toMatchObject([{ writer: OWN, standing: 'differs', remembered: { sequence: 10 } }]);
  });

  it('continues after events were pruned under a seal', async () => {
    const witness = start();
    witness.noteAcknowledged(acknowledgedHead(0, 3));
    log([head(900)], 'pruned');
    await witness.check();
    expect(witness.heads).toEqual([head(900)]);
    expect(witness.mismatches).toEqual([]);
  });

  it('reports nothing and forgets nothing if the control plane does not answer', async () => {
    const witness = start();
    witness.noteAcknowledged(acknowledgedHead(0, 3));
    await witness.check();
    expect(witness.heads).toEqual([head(3)]);
    expect(warnings).toEqual([]);
  });
});

describe('an audit log that was rolled back', () => {
  it.each<[HeadStanding, AuditHead[]]>([
    ['behind', [head(2)]],
    ['differs', [head(5, OWN, 77)]],
    ['missing', []],
  ])('is reported, recorded and remembered over a restart: %s', async (standing, ends) => {
    const witness = start();
    witness.noteAcknowledged(acknowledgedHead(0, 5));
    log(ends, standing);
    await witness.check();
    await witness.check();
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toContain('svc audit accept');
    expect(types()).toEqual(['sidecar.audit.mismatch_noticed']);
    expect(sink.events[0]?.data).toMatchObject({
      'svc.audit.writer': OWN,
      'svc.audit.remembered_sequence': 5,
      'svc.audit.remembered_hash': hash(5),
      ...(ends[0] && { 'svc.audit.found_sequence': ends[0].sequence }),
    });
    await witness.stop();
    expect(start().mismatches).toEqual(witness.mismatches);
    expect(witness.mismatches).toMatchObject([{ writer: OWN, standing }]);
  });

  it('is detected in the control plane’s own chain too', async () => {
    const witness = start();
    log([head(1), head(20, CONTROL)]);
    await witness.check();
    channel.auditAnswer = (known) =>
      ok({
        heads: [head(1), head(4, CONTROL)],
        known: known.map((each) => ({ ...each, standing: each.writer === CONTROL ? 'behind' : 'kept' })),
      });
    await witness.check();
    expect(witness.mismatches).toMatchObject([{ writer: CONTROL, standing: 'behind', found: { sequence: 4 } }]);
  });

  it('stays reported while the chain grows; only a person’s acceptance ends it, and that is recorded', async () => {
    const witness = start();
    witness.noteAcknowledged(acknowledgedHead(0, 5));
    log([head(2)], 'behind');
    await witness.check();
    log([head(9)], 'kept');
    witness.noteAcknowledged(acknowledgedHead(2, 9));
    await witness.check();
    expect(witness.heads).toEqual([head(5)]);
    expect(witness.mismatches).toHaveLength(1);
    expect(await witness.accept(OWN, { sequence: 4, hash: hash(4) })).toMatchObject({
      ok: false,
      error: 'no_mismatch',
    });
    expect(await witness.accept(CONTROL, { sequence: 5, hash: hash(5) })).toMatchObject({ error: 'no_mismatch' });
    expect(await witness.accept(OWN, { sequence: 5, hash: hash(5) })).toMatchObject({ ok: true });
    expect(witness.heads).toEqual([head(9)]);
    expect(witness.mismatches).toEqual([]);
    expect(types()).toEqual(['sidecar.audit.mismatch_noticed', 'sidecar.audit.mismatch_accepted']);
    expect(sink.events[1]).toMatchObject({
      actor: 'host',
      data: { 'svc.audit.remembered_sequence': 5, 'svc.audit.found_sequence': 9 },
    });
    expect(start().heads).toEqual([head(9)]);
  });

  it('cannot be accepted while the control plane does not answer', async () => {
    const witness = start();
    witness.noteAcknowledged(acknowledgedHead(0, 5));
    log([head(2)], 'behind');
    await witness.check();
    channel.auditAnswer = null;
    expect(await witness.accept(OWN, { sequence: 5, hash: hash(5) })).toMatchObject({ ok: false });
    expect(witness.mismatches).toHaveLength(1);
  });
});

describe('the witness file', () => {
  it.each([
    ['damaged', '{"version":1', 0o600],
    ['readable by others', '{}', 0o644],
  ])('is left unchanged and reported if it is %s', async (_, text, mode) => {
    writeFileSync(file(), text, { mode });
    const witness = start();
    expect(witness.isKept).toBe(false);
    expect(warnings).toHaveLength(1);
    witness.noteAcknowledged(acknowledgedHead(0, 3));
    await witness.stop();
    expect(readFileSync(file(), 'utf8')).toBe(text);
  });
});
