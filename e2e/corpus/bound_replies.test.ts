import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plantSecret } from '../support/planted_secret.ts';
import type { Session } from '../support/svc.ts';
import { awaitUpstream } from './conversation.ts';
import { bytesOf, type Conversation, conversations } from './corpus_file.ts';
import { type CorpusWorld, openProxied, startCorpusWorld } from './corpus_world.ts';
import type { WireSide } from './wire_side.ts';

// Design section 5, invariant 4: scrubbing never corrupts. Every unusual but legal reply in conversations.json is sent on a
// credentialed path, where each byte is searched for the credential, and must arrive as the upstream sent it.

const BOUND = 'bound.example.test';
const SECRET = plantSecret();
/** Requests that a credentialed path does not change. */
const PLAIN_REQUEST = /^(?:GET|HEAD) \/\S* HTTP\/1\.[01]\r\nHost: [a-z.]+\r\n\r\n$/;
/** Replies that arrive changed by design, with the change. */
const OTHERWISE: Readonly<Record<string, string>> = {
  'reply headers of one hop, and of proxies': 'Alt-Svc is withheld, cookies kept or not',
  'a body in a coding it does not have': 'what cannot be decoded cannot be searched, and breaks off',
};
/** Chunks are divided by the search and lose their extensions (RFC 9112 section 7.1.1); their data and trailers stay. */
const CUT_ANEW = [
  'reply chunks with extensions, odd sizes and trailers',
  '3,000 reply chunks of one byte',
  'a reply sent byte by byte',
];
/** The last bytes of a body are held back until more bytes or the end arrive. */
const KEPT_BACK = ['a reply without a length that comes in parts'];
let world: CorpusWorld;
let session: Session;

beforeAll(async () => {
  world = await startCorpusWorld([BOUND]);
  await world.svc.secret('user/key', SECRET);
  await world.svc.binding({ host: BOUND, scheme: 'bearer', credential_ref: 'vault://user/key', keep_cookies: true });
  session = await world.svc.session();
});
afterAll(() => world.stop());

function withPlainRequests(): Conversation[] {
  return conversations().filter(
    ({ name, turns }) =>
      !(name in OTHERWISE) &&
      turns.every(({ from, bytes, ends, ahead }) =>
        from === 'client' ? ends !== true && ahead !== true && PLAIN_REQUEST.test(text(bytes)) : ahead !== true,
      ),
  );
}

const text = (bytes: Parameters<typeof bytesOf>[0]): string => bytesOf(bytes, BOUND).toString('latin1');

/** Plays the turns, each after the previous one arrived. Returns what the client and the upstream received. */
async function replay({ name, turns }: Conversation, client: WireSide, upstream: WireSide): Promise<[string, string]> {
  let requests = 0;
  let due = 0;
  for (const [index, { from, bytes, cut, ends }] of turns.entries()) {
    const sent = bytesOf(bytes, BOUND);
    if (from === 'client') {
      await client.send(sent, cut);
      requests += 1;
      await upstream.until(`request ${requests}`, () => textOf(upstream).split('\r\n\r\n').length > requests);
    } else {
      await upstream.send(sent, cut);
      due += sent.length;
      if (ends === true) await upstream.end();
      const isKeptBack = KEPT_BACK.includes(name) && ends !== true;
      const hasArrived = (): boolean => {
        if (CUT_ANEW.includes(name)) return isWhole(textOf(client));
        return client.length >= due || (isKeptBack && textOf(client).includes('\r\n\r\n'));
      };
      await client.until(`the bytes of turn ${index}`, hasArrived);
      if (ends === true) await client.until(`the end of turn ${index}`, () => client.ended);
    }
  }
  await client.end();
  await upstream.end();
  await client.until('the end of the upstream', () => client.ended);
  client.drop();
  upstream.drop();
  return [textOf(client), textOf(upstream)];
}

const textOf = (side: WireSide): string => side.bytes.toString('latin1');
const isWhole = (chunked: string): boolean => /\r\n0\r\n[^]*\r\n$/.test(chunked) && chunked.endsWith('\r\n\r\n');

/** Heads and trailers unchanged, with the data of the chunks between them joined. */
function removeChunks(chunked: string): string {
  let at = chunked.indexOf('\r\n\r\n', chunked.search(/\r\ntransfer-encoding/i)) + 4;
  let whole = chunked.slice(0, at);
  for (let size = -1; size !== 0;) {
    const data = chunked.indexOf('\r\n', at) + 2;
    size = Number.parseInt(chunked.slice(at, data), 16);
    whole += chunked.slice(data, data + size);
    at = size === 0 ? data : data + size + 2;
  }
  return whole + chunked.slice(at);
}

describe('on a credentialed path, byte for byte:', () => {
  it.each(withPlainRequests())('$name', async (conversation) => {
    const { upstream, countConnections: counted } = awaitUpstream(world);
    const client = await openProxied(session, BOUND);
    const [atClient, atUpstream] = await replay(conversation, client, upstream);
    const sent = conversation.turns.filter(({ from }) => from === 'upstream').map(({ bytes }) => text(bytes));
    const same = CUT_ANEW.includes(conversation.name) ? removeChunks : (whole: string): string => whole;
    expect(same(atClient)).toBe(same(sent.join('')));
    const requests = atUpstream.split('\r\n\r\n').slice(0, -1);
    expect(requests.filter((head) => !head.includes(`Authorization: Bearer ${SECRET}`))).toEqual([]);
    expect(counted()).toBe(1);
  });

  it("most of the corpus's replies", () => {
    expect(withPlainRequests().length).toBeGreaterThan(45);
    const known = new Set(conversations().map(({ name }) => name));
    expect([...CUT_ANEW, ...KEPT_BACK, ...Object.keys(OTHERWISE)].filter((name) => !known.has(name))).toEqual([]);
  });
});
