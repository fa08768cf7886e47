import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { AuditEvent } from '../../shared/model/audit_event.ts';
import { auditEvent } from '../../shared/wire/audit_events.ts';
import type { AuditSink } from '../ports.ts';
import { FakeAuditSink, FakeClock, FakeMetrics } from '../testing/fakes.ts';
import { idOf, ScriptedChannel } from '../testing/scripted_channel.ts';
import { ok, type Result } from '../../shared/model/result.ts';
import type { ChannelFailure } from './channel_failure.ts';
import type { EventsOutcome } from './control_channel.ts';
import { AuditSpool } from '../spool/audit_spool.ts';
import { Link } from './link.ts';

type Recorded = Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>;

const SIDECAR_ID = 'sdc_00000000000000000000000001';
const EVENT: Recorded = {
  type: 'sandbox.proxy.passthrough',
  session_id: 'ses_00000000000000000000000001',
  actor: 'session',
  data: { 'svc.proxy.upstream.host': 'api.example.test', 'svc.proxy.upstream.status': 200 },
};

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-audit-'));
});

afterEach(() => {
  rmSync(directory, { recursive: true });
});

interface Subject {
  readonly sink: AuditSink;
  readonly channel: ScriptedChannel | null;
  readonly goDown: () => void;
  readonly stop: () => Promise<void>;
}

function fake(): Subject {
  const sink = new FakeAuditSink();
  return {
    sink,
    channel: null,
    goDown: () => {
      sink.reachable = false;
    },
    stop: () => Promise.resolve(),
  };
}

function spool(): Subject & { readonly sink: AuditSpool; readonly channel: ScriptedChannel } {
  const clock = new FakeClock();
  const link = new Link();
  const channel = new ScriptedChannel(clock, link);
  const metrics = new FakeMetrics();
  const sink = new AuditSpool({
    directory,
    channel,
    link,
    clock,
    metrics,
    warn: () => undefined,
    sidecarId: SIDECAR_ID,
    maxSpoolBytes: 10_000_000,
    maxBackoffMs: 20,
  });
  sink.start();
  return {
    sink,
    channel,
    goDown: () => {
      channel.down = 'unreachable';
    },
    stop: () => sink.stop(),
  };
}

/** A control plane that refuses the events with that word. */
const refuse =
  (word: string) =>
  (lines: readonly string[]): Result<EventsOutcome, ChannelFailure> => {
    const rejected = lines.flatMap((line, index) => (line.includes(word) ? [{ index, message: 'not read' }] : []));
    return ok({ accepted: lines.filter((line) => !line.includes(word)).map(idOf), rejected });
  };
const refusedIds = (): readonly string[] => {
  const lines = readFileSync(join(directory, 'rejected.jsonl'), 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => idOf(z.object({ line: z.string() }).parse(JSON.parse(line)).line));
};
const methodOf = (method: string): Recorded => ({ ...EVENT, data: { 'svc.proxy.method': method } });

describe.each([
  ['the fake', fake],
  ['the spool', spool],
])('an audit sink: %s', (_name, make) => {
  it('accepts events, records them without waiting, and flushes', async () => {
    const { sink, stop } = make();
    expect(sink.accepting).toBe(true);
    sink.record(EVENT);
    expect(await sink.flush(5_000)).toBe(true);
    await stop();
  });

  it('records all events of a turn together', async () => {
    const { sink, stop } = make();
    await sink.recordInTurn(EVENT);
    expect(await sink.flush(5_000)).toBe(true);
    await stop();
  });

  it('still records while the control plane is down; then flush returns false', async () => {
    const { sink, goDown, stop } = make();
    goDown();
    sink.record(EVENT);
    expect(sink.accepting).toBe(true);
    expect(await sink.flush(20)).toBe(false);
    await stop();
  });

  it('flushes at once when nothing was recorded', async () => {
    const { sink, goDown, stop } = make();
    goDown();
    expect(await sink.flush(0)).toBe(true);
    await stop();
  });
});

function onDisk(): string {
  const files = readdirSync(directory).map((name) => readFileSync(join(directory, name), 'utf8'));
  return files.join('');
}

describe('the spool as an audit sink', () => {
  it('sends what the control plane accepts: an id, the time, the sidecar, and the recorded fields', async () => {
    const { sink, channel, stop } = spool();
    sink.record(EVENT);
    await sink.flush(5_000);
    const sent = auditEvent.parse(JSON.parse(channel.sent[0]?.[0] ?? ''));
    expect(sent).toEqual({ ...EVENT, id: sent.id, time: '2026-01-02T03:04:05.678Z', sidecar_id: SIDECAR_ID });
    await stop();
  });

  it('tells the reason of each event of a session', async () => {
    const { sink, stop } = spool();
    const told: string[][] = [];
    sink.onReason((...each) => told.push(each));
    const refused = { 'svc.proxy.reason': 'egress_host_not_allowed' };
    sink.record(EVENT);
    sink.record({ ...EVENT, data: refused });
    sink.record({ ...EVENT, session_id: null, data: refused });
    await sink.recordInTurn({ ...EVENT, session_id: 'ses_2', data: refused });
    expect(told).toEqual([
      [EVENT.session_id, 'egress_host_not_allowed'],
      ['ses_2', 'egress_host_not_allowed'],
    ]);
    await stop();
  });

  it('gives every event its own id', async () => {
    const { sink, channel, stop } = spool();
    for (let n = 0; n < 2_000; n += 1) sink.record(EVENT);
    await sink.flush(5_000);
    expect(channel.log.size).toBe(2_000);
    await stop();
  });

  it('truncates texts that the control plane would refuse, so a client cannot keep its request out of the log', async () => {
    const { sink, channel, stop } = spool();
    const data = { 'svc.proxy.method': 'M'.repeat(60_000), 'svc.proxy.upstream.path': `/${'p'.repeat(65_000)}` };
    sink.record({ ...EVENT, data });
    await sink.flush(5_000);
    const sent = auditEvent.parse(JSON.parse(channel.sent[0]?.[0] ?? ''));
    expect(sent.data['svc.proxy.method']).toHaveLength(1_001);
    await stop();
  });

  it('has the event on disk, in a file only its owner can read, before record returns', async () => {
    const { sink, goDown, stop } = spool();
    goDown();
    sink.record(EVENT);
    const [name = ''] = readdirSync(directory);
    expect(readFileSync(join(directory, name), 'utf8')).toMatch(/^\{"id":"evt_.*\}\n$/);
    await stop();
  });

  it('writes the events of one event-loop turn together, and confirms none before they are written', async () => {
    const { sink, goDown, stop } = spool();
    goDown();
    const both = Promise.all([sink.recordInTurn(EVENT), sink.recordInTurn(EVENT)]).then(() => 'written');
    expect(await Promise.race([both, Promise.resolve('under way')])).toBe('under way');
    expect(onDisk()).toBe('');
    await both;
    expect(onDisk().match(/^\{"id":"evt_.*\}$/gm)).toHaveLength(2);
    await stop();
  });

  it('keeps the order of immediate and batched events, and flushes both', async () => {
    const { sink, channel, stop } = spool();
    void sink.recordInTurn({ ...EVENT, data: { 'svc.proxy.method': 'FIRST' } });
    sink.record({ ...EVENT, data: { 'svc.proxy.method': 'SECOND' } });
    void sink.recordInTurn({ ...EVENT, data: { 'svc.proxy.method': 'THIRD' } });
    expect(await sink.flush(5_000)).toBe(true);
    expect(channel.sent.flat().map((line) => /[A-Z]{5,}/.exec(line.slice(line.indexOf('data')))?.[0])).toEqual([
      'FIRST',
      'SECOND',
      'THIRD',
    ]);
    await stop();
  });

  it('keeps a refused event in rejected.jsonl', async () => {
    const { sink, channel, stop } = spool();
    channel.takeEvents = () => ({ ok: true, value: { accepted: [], rejected: [{ index: 0, message: 'too old' }] } });
    sink.record(EVENT);
    expect(await sink.flush(5_000)).toBe(true);
    expect(readFileSync(join(directory, 'rejected.jsonl'), 'utf8')).toContain('too old');
    await stop();
  });

  it('offers refused events again when the control plane is back, and keeps what it still refuses', async () => {
    const first = spool();
    first.channel.takeEvents = refuse('NEW');
    const id = first.sink.record(methodOf('NEW'));
    const other = first.sink.record(methodOf('NEWER'));
    const plain = first.sink.record(methodOf('GET'));
    expect(await first.sink.flush(5_000)).toBe(true);
    expect([refusedIds(), [...first.channel.log.keys()]]).toEqual([[id, other], [plain]]);
    // The control plane is updated: it does not answer for a while, and then reads one of the two.
    first.goDown();
    first.sink.record(methodOf('GET'));
    expect(await first.sink.flush(20)).toBe(false);
    first.channel.takeEvents = refuse('NEWER');
    first.channel.down = null;
    await expect.poll(refusedIds).toEqual([other]);
    expect(first.channel.log.get(id)).toBe(1);
    await first.stop();
    // So is a sidecar that starts again.
    const second = spool();
    second.sink.record(methodOf('GET'));
    await expect.poll(refusedIds).toEqual([]);
    expect(second.channel.log.get(other)).toBe(1);
    await second.stop();
  });

  it('offers no event of an earlier enrolment, and no damaged line', async () => {
    const foreign = JSON.stringify({ id: 'evt_x', sidecar_id: 'sdc_another' });
    const lines = [{ reason: 'x', line: foreign }, { reason: 'not JSON', line: '{' }, { other: 1 }];
    const text = [...lines.map((line) => JSON.stringify(line)), 'garbage', ''].join('\n');
    writeFileSync(join(directory, 'rejected.jsonl'), text);
    const { sink, channel, stop } = spool();
    const id = sink.record(EVENT);
    expect(await sink.flush(5_000)).toBe(true);
    sink.record(EVENT);
    expect(await sink.flush(5_000)).toBe(true);
    expect(channel.sent.flat().map(idOf)).toEqual([id, expect.stringMatching(/^evt_/)]);
    expect(readFileSync(join(directory, 'rejected.jsonl'), 'utf8')).toBe(text);
    await stop();
  });
});
