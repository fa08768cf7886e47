import { createServer, type Server, type TLSSocket } from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { NO_OUTBOUND, type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { createTestCa, type TestCa } from '../../../e2e/support/test_ca.ts';
import { parseSyslogUrl } from '../../../shared/net/syslog_url.ts';
import { type AuditSinkRecord, auditSinksReply } from '../../../shared/wire/audit_sinks.ts';
import { errorBody } from '../../../shared/wire/errors.ts';
import { nodeOutbound } from '../../entries/node_outbound.ts';
import { DELIVERY_LIMITS } from './sink_delivery.ts';
import { deliverToSinks } from './sink_turn.ts';
import { syslogSink } from './syslog_sink.ts';

/** RFC 5424 section 6, as far as svc writes it. */
const MESSAGE =
  /^<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([!-~]{1,255}) svc ([!-~]{1,128}) ([!-~]{1,32}) - (\{[ -~]*\})$/;

/** The messages of a stream (RFC 5425 section 4.3): what follows the last whole one was cut off. */
function readFrames(bytes: Buffer): string[] {
  const messages: string[] = [];
  for (let rest = bytes; rest.length > 0;) {
    const head = /^([1-9]\d*) /.exec(rest.subarray(0, 12).toString('latin1'));
    if (head === null) throw new Error('no length before a message');
    const start = head[0].length;
    const end = start + Number(head[1]);
    if (end > rest.length) return messages;
    messages.push(rest.subarray(start, end).toString('utf8'));
    rest = rest.subarray(end);
  }
  return messages;
}

/** A receiver over TLS. It keeps what it read, and behaves as told. */
class Receiver {
  readonly connections: Buffer[] = [];
  behaves: (connection: number) => 'reads' | 'breaks off' | 'dies' | 'stays open' = () => 'reads';
  #count = 0;
  readonly #server: Server;

  constructor(certificate: { readonly key: string; readonly cert: string }) {
    this.#server = createServer({ ...certificate, allowHalfOpen: true }, (socket) => this.#serve(socket));
  }

  async listen(): Promise<number> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  close(): void {
    this.#server.close();
  }

  #serve(socket: TLSSocket): void {
    const chunks: Buffer[] = [];
    const how = this.behaves((this.#count += 1));
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      if (how !== 'breaks off') return chunks.push(chunk);
      // A part of it arrived.
      this.connections.push(chunk.subarray(0, Math.floor(chunk.length / 2)));
      return socket.destroy();
    });
    socket.on('end', () => {
      // It had everything in memory, and ended without a word of TLS.
      if (how === 'dies') socket.destroy();
      else this.connections.push(Buffer.concat(chunks));
      if (how === 'reads') socket.end();
    });
  }
}

let ca: TestCa;
let certificate: Awaited<ReturnType<TestCa['issue']>>;
let receiver: Receiver;
let control: InProcess;
let port = 0;
const NAME = 'logs.example.com';

beforeAll(async () => {
  ca = await createTestCa();
  certificate = await ca.issue([NAME]);
});
beforeEach(async () => {
  receiver = new Receiver(certificate);
  port = await receiver.listen();
  const pinned = new Map([[NAME, { address: '127.0.0.1', port }]]);
  control = await startInProcess({
    outbound: nodeOutbound({ isLocal: true, pinned, roots: [ca.pem], timeoutMs: 2_000 }),
  });
});
afterEach(async () => {
  await control.stop();
  receiver.close();
});

const add = (url = `syslog+tls://${NAME}`, fields: object = {}) =>
  control.asUser('POST', '/v1/audit-sinks', { kind: 'syslog', name: 'siem', url, ...fields });
const sink = async (): Promise<AuditSinkRecord | undefined> =>
  (await parseReply(auditSinksReply, control.asUser('GET', '/v1/audit-sinks'))).items[0];
const happen = async (count: number): Promise<void> => {
  for (let at = 0; at < count; at += 1) {
    await control.asUser('POST', '/v1/secrets', { path: `user/s${at}`, value: 'planted-value' });
  }
};
const turn = (eventsPerBatch = 3) => deliverToSinks(control.context, { ...DELIVERY_LIMITS, eventsPerBatch });
const received = (): readonly string[] => receiver.connections.flatMap((bytes) => readFrames(bytes));
const sequenceOf = (message: string): number => JSON.parse(MESSAGE.exec(message)?.[6] ?? '{}').sequence;

describe('a sink to a receiver of syslog', () => {
  test('sends one message of RFC 5424 for each event, in frames of RFC 5425', async () => {
    expect((await add()).status).toBe(201);
    await happen(4);
    await turn();
    const messages = received();
    expect(messages.map((message) => MESSAGE.exec(message)?.[5])).toEqual([
      'control.audit_sink.created',
      ...Array.from({ length: 4 }, () => 'control.secret.stored'),
    ]);
    expect(messages[0]).toMatch(/^<110>1 2026-01-02T03:04:05\.678Z ent_[0-9a-z]{26} svc ent_[0-9a-z]{26} /);
    expect(messages.map((message) => sequenceOf(message))).toEqual(
      messages.map((_, at) => sequenceOf(messages[0] ?? '') + at),
    );
    expect(messages.join('')).not.toContain('planted-value');
    expect(await sink()).toMatchObject({ host: NAME, failures: 0, behind: false });
  });

  test('loses no event and keeps the order, if connections break off in the middle', async () => {
    await add();
    await happen(12);
    receiver.behaves = (connection) => (['reads', 'breaks off', 'dies'] as const)[connection % 3] ?? 'reads';
    for (let turns = 0; turns < 24; turns += 1) {
      await turn();
      control.clock.ms += 3_600_000;
    }
    const numbers = [...new Set(received().map((message) => sequenceOf(message)))];
    expect(numbers.length).toBeGreaterThanOrEqual(13);
    expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] ?? 0) + at));
    expect(await sink()).toMatchObject({ behind: false, failures: 0 });
  });

  test('does not count what a receiver that keeps the connection open may not have read', async () => {
    await add();
    receiver.behaves = () => 'stays open';
    await turn();
    expect(await sink()).toMatchObject({ failures: 1, problem: 'upstream_unreachable', behind: true });
  });

  test('counts what a receiver read that closes without TLS only if that was agreed to', async () => {
    await add();
    receiver.behaves = () => 'dies';
    await turn();
    expect(await sink()).toMatchObject({ failures: 1, problem: 'closed_without_tls', behind: true });
    await control.asUser('DELETE', `/v1/audit-sinks/${(await sink())?.id}`);
    await add(undefined, { accepts_plain_close: true });
    await turn();
    expect(await sink()).toMatchObject({ failures: 0, problem: null, behind: false });
    receiver.behaves = () => 'stays open';
    await happen(1);
    await turn();
    expect(await sink()).toMatchObject({ failures: 1, problem: 'upstream_unreachable' });
  });

  test('sends nothing to a host with another name in its certificate', async () => {
    const pinned = new Map([['other.example.com', { address: '127.0.0.1', port }]]);
    const stream = nodeOutbound({ isLocal: true, pinned, roots: [ca.pem] }).stream;
    const bytes = new TextEncoder().encode('1 x');
    const sent = await stream?.({ host: 'other.example.com', port: 6514, bytes, timeoutMs: 2_000 });
    expect(sent).toMatchObject({ ok: false, error: { reason: 'upstream_tls_failed' } });
    expect(receiver.connections).toEqual([]);
  });

  test('writes what others chose as printable ASCII, so that no event can begin another message', () => {
    const event = {
      id: 'evt_1',
      type: 'sandbox.proxy.foreign_credential_kept' as const,
      time: '2026-01-02T03:04:05.678Z',
      sidecar_id: null,
      session_id: null,
      actor: null,
      data: { 'svc.control.host': 'ü\n<110>1 \u{1F600}\u007f' },
      writer: 'ent_1',
      sequence: 1,
      previous_hash: '',
      hash: '',
      received_at: '2026-01-02T03:04:05.678Z',
    };
    const batch = { id: 'x', enterpriseId: 'ent_1', events: [event, event], after: 0, nowMs: 0, approvalsUrl: null };
    const messages = readFrames(Buffer.from(syslogSink.frame(batch)));
    expect(messages.length).toBe(2);
    const [, priority, , , , msgid, json = '{}'] = MESSAGE.exec(messages[0] ?? '') ?? [];
    expect([priority, msgid]).toEqual(['110', 'sandbox.proxy.foreign_credential']);
    expect(JSON.parse(json)).toEqual(event);
  });
});

/** A resolver that leads every name into a private network. */
const resolve: NonNullable<Parameters<typeof nodeOutbound>[0]['resolve']> = (_name, _options, done) =>
  done(null, [{ address: '10.0.0.1', family: 4 }]);

describe('its URL', () => {
  test.each([
    ['syslog+tls://logs.example.com', { host: 'logs.example.com', port: 6514 }],
    ['syslog+tls://LOGS.example.com:10514/', { host: 'logs.example.com', port: 10_514 }],
  ])('%s is read', (url, parsed) => {
    expect(parseSyslogUrl(url)).toEqual({ ok: true, value: parsed });
  });

  test.each([
    'https://logs.example.com',
    'syslog://logs.example.com:514',
    'syslog+tls://user:password@logs.example.com',
    'syslog+tls://logs.example.com/path',
    'syslog+tls://logs.example.com:0',
    'syslog+tls://logs.example.com:65536',
    'syslog+tls://',
  ])('%s is refused, with the field', async (url) => {
    const reply = await add(url);
    expect([reply.status, errorBody.parse(await reply.json()).error.message]).toEqual([
      400,
      expect.stringContaining('url'),
    ]);
  });

  test('a hosted control plane calls no private name or address', async () => {
    const stream = nodeOutbound({ isLocal: false, pinned: new Map() }).stream;
    const bytes = new TextEncoder().encode('1 x');
    for (const host of ['127.0.0.1', 'localhost', '169.254.169.254', 'intranet', '::1']) {
      const sent = await stream?.({ host, port: 6514, bytes, timeoutMs: 2_000 });
      expect([host, sent?.ok === false ? sent.error.message : '']).toEqual([
        host,
        expect.stringContaining('public host names only'),
      ]);
    }
    const inside = nodeOutbound({ isLocal: false, pinned: new Map(), resolve }).stream;
    const sent = await inside?.({ host: NAME, port: 6514, bytes, timeoutMs: 2_000 });
    expect(sent?.ok === false ? sent.error.message : '').toContain('private address');
  });

  test('is refused where the runtime has no such connections', async () => {
    const other = await startInProcess({ outbound: NO_OUTBOUND });
    const reply = await other.asUser('POST', '/v1/audit-sinks', {
      kind: 'syslog',
      name: 'x',
      url: `syslog+tls://${NAME}`,
    });
    expect(errorBody.parse(await reply.json()).error.message).toContain('no such connection can be made');
    await other.stop();
  });
});
