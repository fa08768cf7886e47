import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { err, ok } from '../../shared/model/result.ts';
import { FailingFiles } from '../testing/failing_files.ts';
import { FakeClock } from '../testing/fakes.ts';
import { idOf, ScriptedChannel } from '../testing/scripted_channel.ts';
import { channelFailure } from '../control/channel_failure.ts';
import { EventIds } from './event_ids.ts';
import { EventSender } from './event_sender.ts';
import { Link } from '../control/link.ts';
import { Spool } from './spool.ts';

let files: FailingFiles;
let spool: Spool;
let link: Link;
let channel: ScriptedChannel;
let sender: EventSender;
let quarantined: string[];
const ids = new EventIds();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  files = new FailingFiles();
  link = new Link();
  channel = new ScriptedChannel(new FakeClock(), link);
  quarantined = [];
  open();
});

afterEach(async () => {
  channel.release();
  await sender.stop();
  vi.useRealTimers();
});

function open(): void {
  spool = new Spool({ directory: '/spool', maxSpoolBytes: 1_000_000, segmentBytes: 2_000, files });
  sender = new EventSender({ spool, channel, link, quarantine: keepAside, random: () => 0.5 });
  sender.start();
}

function keepAside(line: string): void {
  quarantined.push(line);
}

function record(count = 1): string[] {
  return Array.from({ length: count }, () => {
    const id = ids.nextId(1_767_323_045_678);
    spool.append([`${JSON.stringify({ id, data: {} })}\n`]);
    sender.notify();
    return id;
  });
}

describe('sending events', () => {
  it('starts within 50 ms of the first event, in one call with those that follow', async () => {
    const first = record(3);
    await vi.advanceTimersByTimeAsync(10);
    const second = record(2);
    await vi.advanceTimersByTimeAsync(40);
    expect(channel.sent.map((events) => events.map(idOf))).toEqual([[...first, ...second]]);
    expect(spool.events).toBe(0);
  });

  it('batches the events that arrive during a call, and leaves none behind', async () => {
    link.markUp();
    await vi.advanceTimersByTimeAsync(1);
    channel.hold();
    record(2);
    await vi.advanceTimersByTimeAsync(20);
    const during = record(1);
    channel.release();
    await vi.advanceTimersByTimeAsync(10);
    const after = record(1);
    expect(channel.sent).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(20);
    expect(channel.sent.slice(1).map((events) => events.map(idOf))).toEqual([[...during, ...after]]);
    expect(spool.events).toBe(0);
  });

  it('continues without a pause while there are more events than fit one call', async () => {
    spool = new Spool({ directory: '/large', maxSpoolBytes: 10_000_000, files });
    await sender.stop();
    sender = new EventSender({ spool, channel, link, quarantine: () => undefined });
    record(1_700);
    sender.start();
    await vi.advanceTimersByTimeAsync(1);
    expect(channel.log.size).toBe(1_500);
    await vi.advanceTimersByTimeAsync(250);
    expect(channel.log.size).toBe(1_700);
  });

  it('gathers for longer under load, and for a short time again after it', async () => {
    record(30);
    await vi.advanceTimersByTimeAsync(50);
    expect(channel.sent).toHaveLength(1);
    const next = record(10);
    await vi.advanceTimersByTimeAsync(100);
    expect(channel.sent).toHaveLength(1);
    const later = record(5);
    await vi.advanceTimersByTimeAsync(150);
    expect(channel.sent.slice(1).map((events) => events.map(idOf))).toEqual([[...next, ...later]]);
    record(1);
    await vi.advanceTimersByTimeAsync(250);
    const last = record(1);
    await vi.advanceTimersByTimeAsync(50);
    expect(channel.sent.slice(3).map((events) => events.map(idOf))).toEqual([last]);
  });

  it('does not wait under load once a call is full', async () => {
    spool = new Spool({ directory: '/large', maxSpoolBytes: 10_000_000, files });
    await sender.stop();
    sender = new EventSender({ spool, channel, link, quarantine: () => undefined });
    sender.start();
    record(30);
    await vi.advanceTimersByTimeAsync(50);
    record(499);
    await vi.advanceTimersByTimeAsync(10);
    expect(channel.sent).toHaveLength(1);
    record(1);
    await vi.advanceTimersByTimeAsync(10);
    expect(channel.sent[1]).toHaveLength(500);
  });

  it('does not wait under load if a session ends', async () => {
    record(30);
    await vi.advanceTimersByTimeAsync(50);
    record(1);
    await expect(sender.flush(10)).resolves.toBe(true);
  });

  it('uses calls of at most 500 events and 256 KiB', async () => {
    spool = new Spool({ directory: '/large', maxSpoolBytes: 10_000_000, files });
    await sender.stop();
    sender = new EventSender({ spool, channel, link, quarantine: () => undefined });
    record(1_200);
    sender.start();
    await sender.flush(1_000);
    expect(channel.sent.every((events) => events.length <= 500)).toBe(true);
    expect(channel.log.size).toBe(1_200);
  });

  it('resends pending events after the control plane was killed, and each event is in the log once', async () => {
    const recorded = record(5);
    channel.hold();
    await vi.advanceTimersByTimeAsync(50);
    channel.down = 'unreachable';
    channel.release();
    await vi.advanceTimersByTimeAsync(5_000);
    const later = record(5);
    expect(spool.events).toBe(10);
    channel.down = null;
    await vi.advanceTimersByTimeAsync(10_000);
    expect([...channel.log.keys()]).toEqual([...recorded, ...later]);
    expect(new Set(channel.log.values())).toEqual(new Set([1]));
    expect(spool.events).toBe(0);
  });

  it('removes nothing while the replies are invalid', async () => {
    channel.takeEvents = () => err(channelFailure('invalid_reply', 'garbage'));
    record(5);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(spool.events).toBe(5);
    expect(channel.sent.length).toBeLessThan(40);
  });

  it('removes nothing for a reply that accepts events that were not sent', async () => {
    channel.takeEvents = () => ok({ accepted: ['evt_somebody_else'], rejected: [] });
    record(5);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(spool.events).toBe(5);
  });

  it('resends only the rest if a part was accepted', async () => {
    const recorded = record(4);
    channel.takeEvents = (events) => ok({ accepted: events.slice(0, 2).map(idOf), rejected: [] });
    await sender.flush(1_000);
    expect(channel.sent.map((events) => events.map(idOf))).toEqual([recorded, recorded.slice(2)]);
    expect(spool.events).toBe(0);
  });

  it('sets aside events that can never be accepted, and continues', async () => {
    const recorded = record(3);
    channel.takeEvents = (events) =>
      ok({ accepted: events.filter((_, index) => index !== 1).map(idOf), rejected: [{ index: 1, message: 'no' }] });
    expect(await sender.flush(1_000)).toBe(true);
    expect(quarantined.map(idOf)).toEqual([recorded[1]]);
  });

  it('continues at once when another call reaches the control plane again', async () => {
    channel.down = 'unreachable';
    record(1);
    await vi.advanceTimersByTimeAsync(60_000);
    channel.down = null;
    link.markUp();
    await vi.advanceTimersByTimeAsync(0);
    expect(spool.events).toBe(0);
  });

  it('does not retry faster because of new events while the control plane is down', async () => {
    channel.down = 'unreachable';
    record(1);
    await vi.advanceTimersByTimeAsync(30_000);
    const tries = channel.sent.length;
    for (let n = 0; n < 100; n += 1) {
      record(1);
      await vi.advanceTimersByTimeAsync(30);
    }
    expect(channel.sent.length - tries).toBeLessThan(3);
  });
});

describe('events of an earlier run', () => {
  it('are sent first, without a new event', async () => {
    channel.down = 'unreachable';
    const recorded = record(30);
    await sender.stop();
    channel.down = null;
    open();
    await vi.advanceTimersByTimeAsync(0);
    expect([...channel.log.keys()]).toEqual(recorded);
  });

  it('are in the log once even if that run died before it saw the reply', async () => {
    const recorded = record(3);
    channel.takeEvents = (events) => {
      for (const event of events) channel.log.set(idOf(event), 1);
      return err(channelFailure('timeout', 'the reply was lost'));
    };
    await vi.advanceTimersByTimeAsync(50);
    await sender.stop();
    channel.takeEvents = null;
    open();
    await vi.advanceTimersByTimeAsync(0);
    expect([...channel.log.keys()]).toEqual(recorded);
    expect(spool.events).toBe(0);
  });

  it('are not held up by a damaged line', async () => {
    await sender.stop();
    const good = JSON.stringify({ id: ids.nextId(0), data: {} });
    files.contents.set('/spool/000000000001.jsonl', Buffer.from(`{"id": half\n${good}\n`));
    open();
    await vi.advanceTimersByTimeAsync(0);
    expect([...channel.log.keys()]).toEqual([idOf(good)]);
    expect(quarantined).toEqual(['{"id": half']);
  });
});

describe('refused events', () => {
  const line = JSON.stringify({ id: ids.nextId(0), data: {} });

  it('that cannot be removed, as on a full disk, do not end the sending of others', async () => {
    await sender.stop();
    const refused = { list: () => [{ id: idOf(line), line }], remove: () => fail() };
    sender = new EventSender({ spool, channel, link, quarantine: keepAside, refused, random: () => 0.5 });
    sender.start();
    link.markUp();
    const [id] = record();
    await vi.advanceTimersByTimeAsync(50);
    expect([...channel.log.keys()]).toEqual([idOf(line), id]);
  });
});

const fail = (): never => {
  throw new Error('ENOSPC');
};

describe('flushing', () => {
  it('returns true at once if there is nothing to send', async () => {
    expect(await sender.flush(0)).toBe(true);
  });

  it('does not wait for the batch to fill', async () => {
    record(1);
    expect(await sender.flush(1_000)).toBe(true);
    expect(channel.log.size).toBe(1);
  });

  it('does not wait for events recorded after it', async () => {
    record(1);
    channel.hold();
    const flushed = sender.flush(1_000);
    await vi.advanceTimersByTimeAsync(0);
    record(5);
    channel.release();
    expect(await flushed).toBe(true);
  });

  it('returns false after the timeout, and the events stay', async () => {
    channel.down = 'unreachable';
    record(1);
    const flushed = sender.flush(500);
    await vi.advanceTimersByTimeAsync(500);
    expect(await flushed).toBe(false);
    expect(spool.events).toBe(1);
  });
});
