import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTunnel, secure } from '../support/raw_client.ts';
import type { Session } from '../support/svc.ts';
import { startWorld, type World } from '../support/world.ts';
import { ipLiterals, PLAIN } from './corpus_file.ts';

// Design section 5, invariant 7: an address of a private range is refused on passthrough, in every spelling.

let world: World;
let session: Session;
const due: unknown[] = [];

beforeAll(async () => {
  world = await startWorld([PLAIN]);
  session = await world.svc.session();
});
afterAll(() => world.stop());

describe('a tunnel to an address', () => {
  it.each(ipLiterals())('written $literal ($why) is refused', async ({ literal, status, code }) => {
    const tunnel = await openTunnel(session, `${literal}:443`);
    due.push(code);
    let answer = tunnel.reply;
    if (answer.status === 200) {
      const client = await secure(tunnel.connection, session, literal, { servername: '' });
      // The Host names an allowed host, but the tunnel decides where a request goes.
      answer = await client.exchange(`GET / HTTP/1.1\r\nHost: ${PLAIN}\r\n\r\n`);
    }
    tunnel.connection.close();
    expect([answer.status, answer.body.data.toString()]).toEqual([status, expect.stringContaining(`"code":"${code}"`)]);
  });

  it('records each, and dials none', async () => {
    await session.end();
    const events = await world.svc.eventsOf(session);
    // The later ones of a minute are summed.
    const recorded = events.flatMap(({ type, data }) =>
      Array.from({ length: Number(data['svc.proxy.count'] ?? 1) }, () => `${type} ${String(data['svc.proxy.reason'])}`),
    );
    expect(recorded.toSorted()).toEqual(due.map((code) => `sandbox.proxy.rejected ${String(code)}`).toSorted());
    expect(world.upstream.requests).toEqual([]);
  });
});
