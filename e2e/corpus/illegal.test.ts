import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plantSecret } from '../support/planted_secret.ts';
import type { Session } from '../support/svc.ts';
import {
  bytesOf,
  type IllegalReply,
  type IllegalRequest,
  illegalReplies,
  illegalRequests,
  PLAIN,
} from './corpus_file.ts';
import { type CorpusWorld, openProxied, startCorpusWorld } from './corpus_world.ts';
import { WireSide } from './wire_side.ts';

// Design section 5, invariant 6: every message that two parsers could read differently is refused, with and without a binding. If
// the error is known in time, nothing is forwarded, and no credential is looked up.

const BOUND = 'bound.example.test';
const STREAMED = 'streamed.example.test';
const SECRET = plantSecret();
let world: CorpusWorld;

beforeAll(async () => {
  world = await startCorpusWorld([PLAIN, BOUND, STREAMED]);
  await world.svc.secret('user/key', SECRET);
  await world.svc.secret('user/streamed', SECRET);
  await world.svc.binding({ host: BOUND, scheme: 'bearer', credential_ref: 'vault://user/key' });
  await world.svc.binding({
    host: STREAMED,
    scheme: 'bearer',
    credential_ref: 'vault://user/streamed',
    body: 'stream',
  });
});
afterAll(() => world.stop());

/** The bytes of each upstream connection from now on. */
function watchUpstream(onData: (socket: WireSide) => void = () => undefined): WireSide[] {
  const sides: WireSide[] = [];
  world.upstream.onConnection((socket) => {
    const side = new WireSide(socket);
    sides.push(side);
    socket.on('data', () => onData(side));
    socket.on('end', () => socket.end());
  });
  return sides;
}

async function credentialsReleased(): Promise<unknown[]> {
  const events = await world.svc.events();
  return events
    .filter((event) => event.type === 'control.credential.released')
    .map((event) => event.data['svc.control.credential_ref']);
}

/** Type and reason of the session's events, in order. */
async function listRecorded(session: Session): Promise<unknown[]> {
  await session.end();
  const events = await world.svc.eventsOf(session);
  return events.map(({ type, data }) => [type, data['svc.proxy.reason']]);
}

/** The status and code of the client's refusal, after its connection has ended. */
async function refusalAt(client: WireSide): Promise<string> {
  await client.until('the end of the connection', () => client.ended);
  const text = client.bytes.toString('latin1');
  return `${text.slice(9, 12)} ${/"code":"(\w+)"/.exec(text)?.[1] ?? 'no code'}`;
}

describe.each([
  { kind: 'without a binding', host: PLAIN, released: [] },
  { kind: 'with a binding', host: BOUND, released: [] },
  // A streamed body is read after the credential was written into the head; the cache answers all lookups but the first.
  { kind: 'with a binding whose bodies stream', host: STREAMED, released: ['vault://user/streamed'] },
])('$kind an illegal request', ({ host, released }) => {
  const due: unknown[] = [];
  let session: Session;
  beforeAll(async () => {
    session = await world.svc.session();
  });

  it.each(illegalRequests())('is refused: $name', async (one: IllegalRequest) => {
    const upstream = watchUpstream();
    const client = await openProxied(session, host);
    const bytes = bytesOf(one.bytes, host);
    due.push(['sandbox.proxy.rejected', one.code]);
    await client.send(bytes);
    // An incomplete request is refused when its sender ends; other requests need no end.
    await client.end();
    expect(await refusalAt(client)).toBe(`${one.status} ${one.code}`);
    client.drop();
    for (const side of upstream) await side.until('the end of the connection', () => side.ended);
    // Checks each connection: one that was dialled for the previous request may appear only now.
    for (const side of upstream) {
      const sentOn = side.bytes.toString('latin1');
      expect(one.in === 'head' || host === BOUND ? sentOn : looksWhole(sentOn, bytes)).toBe('');
    }
  });

  it('records each once, under its code', async () => {
    expect(await listRecorded(session)).toEqual(due);
  });

  it('caused no credential lookup before it was known to be illegal', async () => {
    expect(await credentialsReleased()).toEqual(released);
  });
});

/** Expects that of a streamed body neither bytes after its error nor enough to look complete were forwarded. */
function looksWhole(sentOn: string, request: Buffer): string {
  const body = sentOn.slice(sentOn.indexOf('\r\n\r\n') + 4);
  const isPart = request.toString('latin1').includes(body) && !body.includes('SMUGGLED');
  return isPart && !LAST_CHUNK.test(sentOn) ? '' : sentOn;
}

const LAST_CHUNK = /\r\n0(;[^\r]*)?\r\n([^\r\n]+\r\n)*\r\n$/;

describe.each([
  { kind: 'without a binding', host: PLAIN, mediated: 'sandbox.proxy.passthrough' },
  { kind: 'with a binding', host: BOUND, mediated: 'sandbox.proxy.binding_injected' },
])('$kind an illegal reply', ({ host, mediated }) => {
  const due: unknown[] = [];
  let session: Session;
  beforeAll(async () => {
    session = await world.svc.session();
  });

  it.each(illegalReplies())('is not passed on: $name', async (one: IllegalReply) => {
    const raw = bytesOf(one.bytes);
    watchUpstream((side) => {
      if (!side.bytes.includes('\r\n\r\n')) return;
      void side.send(raw).then(() => (one.ends === true ? side.end() : undefined));
    });
    const client = await openProxied(session, host);
    await client.send(Buffer.from(`${one.method} / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`));
    const refused = one.outcome === 'refused';
    due.push(refused ? ['sandbox.proxy.rejected', 'upstream_invalid_reply'] : [mediated, undefined]);
    await client.until('the end of the connection', () => client.ended);
    const got = client.bytes.toString('latin1');
    client.drop();
    expect(got).toSatisfy(refused ? isRefusal : isPartOf(raw.toString('latin1'), host));
  });

  it('records each once', async () => {
    expect(await listRecorded(session)).toEqual(due);
  });
});

/** A 502 after the interim replies that preceded the illegal one; without a body for HEAD. */
function isRefusal(got: string): boolean {
  const answer = got.replaceAll(/HTTP\/1\.1 10[23] [^]*?\r\n\r\n/g, '');
  return answer.startsWith('HTTP/1.1 502 ') && (answer.endsWith('\r\n\r\n') || answer.includes(INVALID_REPLY));
}

const INVALID_REPLY = '"code":"upstream_invalid_reply"';

/** The beginning of the reply, but not enough to look complete; it may be empty on a credentialed path. */
function isPartOf(reply: string, host: string): (got: string) => boolean {
  return (got) => {
    if (LAST_CHUNK.test(got)) return false;
    return host === PLAIN ? got.length > 20 && reply.startsWith(got) : got === '' || got.startsWith('HTTP/1.1 200 OK');
  };
}
