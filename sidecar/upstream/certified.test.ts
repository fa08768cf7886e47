import { afterEach, expect, test } from 'vitest';
import { Connection } from '../../machine/connection/connection.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { PresentedCertificate } from '../ports.ts';
import { ScriptedStream } from '../testing/scripted_stream.ts';
import type { Dialling } from './dialling.ts';
import { describeCertificateAlert } from '../../shared/net/certificate_alert.ts';
import { TunnelLanes } from './lanes.ts';
import { WarmUpstreams } from './warm_upstreams.ts';

const GONE = refusal('credential_unavailable', 'withdrawn');
let lapsed: Refusal | null = null;
const listeners = new Set<() => void>();
const withdraw = (): void => {
  lapsed = GONE;
  for (const listener of listeners) listener();
};
afterEach(() => {
  lapsed = null;
  listeners.clear();
});

const certificate = (id: string): PresentedCertificate => ({
  id,
  reference: 'vault://user/certificate',
  version: id,
  chain: '',
  key: new Secret('key'),
  inForce: Object.assign(() => lapsed, {
    onChanged: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  }),
});

/** Lanes that record the certificate of each dial. */
function openLanes() {
  const dialled: (string | null)[] = [];
  const dial = (_host: string, _publicOnly?: boolean, presented?: PresentedCertificate | null): Dialling => {
    dialled.push(presented?.id ?? null);
    return { connected: Promise.resolve(ok(new Connection(new ScriptedStream()))), cancel: () => undefined };
  };
  const owner = { onTunnelsClosed: () => () => undefined };
  const warm = new WarmUpstreams(9);
  const lanes = new TunnelLanes({
    dialer: { dial },
    host: 'a.test',
    isPublicOnly: () => false,
    warm: warm.of(owner, 'a.test'),
  });
  return { lanes, dialled, warm };
}

/** Streams close in a later turn. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

async function take(lanes: TunnelLanes, lane: string, credential: object | null, with_: PresentedCertificate | null) {
  const taken = await lanes.take(lane, credential, true, with_);
  if (!taken.ok) throw new Error(taken.error.message);
  return taken.value;
}

test('a connection is used again only for the same lane, credential, record and version', async () => {
  const { lanes, dialled } = openLanes();
  const secret = {};
  const first = await take(lanes, 'a', secret, certificate('crt_1 1'));
  lanes.give('a', first.connection);
  expect(await take(lanes, 'a', secret, certificate('crt_1 1'))).toEqual({
    connection: first.connection,
    reused: true,
  });
  for (const [lane, credential, with_] of [
    ['b', secret, certificate('crt_1 1')],
    ['a', {}, certificate('crt_1 1')],
    ['a', secret, certificate('crt_1 2')],
    ['a', secret, null],
  ] as const) {
    lanes.give('a', first.connection);
    expect((await take(lanes, lane, credential, with_)).connection).not.toBe(first.connection);
  }
  expect(dialled).toEqual(['crt_1 1', 'crt_1 1', 'crt_1 1', 'crt_1 2', null]);
  lanes.close();
});

test('no connection that a certificate opened waits for a later tunnel', async () => {
  const { lanes, warm } = openLanes();
  const { connection } = await take(lanes, 'a', {}, certificate('crt_1 1'));
  lanes.give('a', connection);
  lanes.close();
  await nextTurn();
  expect([warm.size, connection.closed]).toEqual([0, true]);
});

test('a withdrawn certificate ends its connections, idle or in use, and opens no other', async () => {
  const { lanes, dialled } = openLanes();
  const used = await take(lanes, 'a', {}, certificate('crt_1 1'));
  const idle = await take(lanes, 'b', {}, certificate('crt_1 1'));
  const plain = await take(lanes, 'c', {}, null);
  lanes.give('b', idle.connection);
  withdraw();
  await nextTurn();
  expect([used, idle, plain].map(({ connection }) => connection.closed)).toEqual([true, true, false]);
  expect(await lanes.take('a', {}, true, certificate('crt_1 1'))).toEqual({ ok: false, error: GONE });
  expect(dialled.length).toBe(3);
  lanes.close();
});

test('a connection is not handed out if its certificate was withdrawn while it was dialled', async () => {
  const { lanes } = openLanes();
  const taking = lanes.take('a', {}, true, certificate('crt_1 1'));
  withdraw();
  expect(await taking).toEqual({ ok: false, error: GONE });
  lanes.close();
});

test.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
  'no connection stays open if it is withdrawn %i steps after the dial',
  async (steps) => {
    const { lanes } = openLanes();
    const taking = lanes.take('a', {}, true, certificate('crt_1 1'));
    for (let step = 0; step < steps; step += 1) await Promise.resolve();
    withdraw();
    const taken = await taking;
    await nextTurn();
    expect(taken.ok ? taken.value.connection.closed : taken.error === GONE).toBe(true);
    expect(listeners.size).toBe(0);
    lanes.close();
  },
);

test.each([
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', null, 'requires a client certificate'],
  ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', null, 'if it requires a client certificate'],
  [
    'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
    certificate('1'),
    'did not accept the client certificate vault://user/certificate',
  ],
  ['ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL', certificate('1'), '--http2'],
])('%s says what it says about the certificate', (code, presented, said) => {
  const text = describeCertificateAlert(code, 'a.test', presented);
  expect(text).toContain(said);
});

test('another loss of the connection says nothing about the certificate', () => {
  expect(describeCertificateAlert('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'a.test', null)).toBeNull();
  expect(describeCertificateAlert('ECONNRESET', 'a.test', certificate('1'))).toBeNull();
});
