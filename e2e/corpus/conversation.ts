import { bytesOf, type Conversation, type Turn } from './corpus_file.ts';
import type { CorpusWorld } from './corpus_world.ts';
import { WireSide } from './wire_side.ts';

/** What arrived on both sides of a conversation, as latin1 text. */
interface Arrived {
  readonly atUpstream: string;
  readonly atClient: string;
  readonly connections: number;
}

/** The path of the bytes: direct, or through the proxy, which changes some as the corpus states. */
type Way = 'direct' | 'proxied';

/**
 * Plays the turns over an open connection, each after the bytes of the previous one arrived in full. Then finishes both sides,
 * so that bytes added at the end are noticed.
 */
export async function play(
  { turns }: Conversation,
  client: WireSide,
  upstream: WireSide,
  way: Way,
  counted: () => number,
): Promise<Arrived> {
  const due = { client: 0, upstream: 0 };
  const sides = { client, upstream };
  for (const [index, turn] of turns.entries()) {
    const other = turn.from === 'client' ? 'upstream' : 'client';
    const sender = sides[turn.from];
    const receiver = sides[other];
    if (turn.after !== undefined) {
      const wanted = turn.after;
      await sender.until(`${JSON.stringify(wanted)} at turn ${index}`, () =>
        sender.bytes.includes(wanted, 0, 'latin1'),
      );
    }
    await sender.send(bytesOf(turn.bytes), turn.cut);
    due[other] += arriving(turn, way).length;
    if (turn.ends === true) await sender.end();
    if (turn.ahead === true) continue;
    await receiver.until(`the bytes of turn ${index}`, () => receiver.length >= due[other]);
    if (turn.ends === true) await receiver.until(`the end of turn ${index}`, () => receiver.ended);
  }
  await finish(client, upstream);
  return {
    atUpstream: upstream.bytes.toString('latin1'),
    atClient: client.bytes.toString('latin1'),
    connections: counted(),
  };
}

async function finish(client: WireSide, upstream: WireSide): Promise<void> {
  await client.end();
  await upstream.until('the end of the client', () => upstream.ended);
  await upstream.end();
  await client.until('the end of the upstream', () => client.ended);
  client.drop();
  upstream.drop();
}

function arriving(turn: Turn, way: Way): Buffer {
  return bytesOf(way === 'proxied' ? (turn.arrives ?? turn.bytes) : turn.bytes);
}

/** The bytes that must arrive on both sides. */
export function expectedArrivals({ turns }: Conversation, way: Way): Pick<Arrived, 'atUpstream' | 'atClient'> {
  const sentBy = (from: Turn['from']): string =>
    turns
      .filter((turn) => turn.from === from)
      .map((turn) => arriving(turn, way).toString('latin1'))
      .join('');
  return { atUpstream: sentBy('client'), atClient: sentBy('upstream') };
}

/** The upstream's side of the next conversation, and the number of its connections. */
export function awaitUpstream(world: CorpusWorld): { upstream: WireSide; countConnections: () => number } {
  const upstream = new WireSide();
  let connections = 0;
  world.upstream.onConnection((socket) => {
    connections += 1;
    if (connections === 1) upstream.attach(socket);
    else socket.destroy();
  });
  return { upstream, countConnections: () => connections };
}
