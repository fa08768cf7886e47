import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { secretsPage } from '../../shared/wire/secrets.ts';
import { sidecarsPage } from '../../shared/wire/sidecars.ts';
import { type ControlPlaneUnderTest, startDenoAt, startNodeAt } from './programs.ts';
import { TestSidecar } from './sidecar_client.ts';
import { ONLY_FULL } from '../support/full_counts.ts';
import { HANGS_MS } from '../support/hangs.ts';

let home = '';
let control: ControlPlaneUnderTest;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-stopping-'));
});
afterEach(async () => {
  await control.stop();
  await rm(home, { recursive: true, force: true });
});

const sent: string[] = [];
const send = (path: string, init?: RequestInit) => {
  sent.push(path);
  return fetch(control.url + path, init);
};
const asUser = (method: string, path: string, body?: unknown) =>
  send(path, {
    method,
    headers: { authorization: `Bearer ${control.localKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

/** Stores one secret after the other until the worker no longer answers. Returns the acknowledged paths. */
async function storeUntilGone(lane: number): Promise<string[]> {
  const stored: string[] = [];
  for (;;) {
    const path = `lane${lane}/s${stored.length}`;
    const reply = await asUser('POST', '/v1/secrets', { path, value: 'v' }).catch(() => null);
    if (reply === null) return stored;
    if (reply.status === 201) stored.push(path);
    await reply.arrayBuffer();
  }
}

describe.each([
  ['Node', startNodeAt],
  ['Deno', startDenoAt],
])('a control worker on %s that is asked to stop', (_, startAt) => {
  test('answers waiting polls, ends waiting streams, and finishes its deferred work', async () => {
    control = await startAt(home);
    const sidecar = await TestSidecar.make(send);
    await sidecar.enrol(control.localKey);
    const stream = await asUser('GET', '/v1/audit-events/stream');
    const held = { 'if-none-match': '"0"' };
    sent.length = 0;
    const poll = sidecar.call('GET', '/v1/sidecar/snapshot?wait=25', { headers: held });
    const reader = stream.body?.getReader();
    await reader?.read();
    await vi.waitFor(() => expect(sent).toContain('/v1/sidecar/snapshot?wait=25'), { timeout: HANGS_MS });
    // The poll was sent before, so it is accepted once this call is answered.
    await (await asUser('GET', '/v1/me')).arrayBuffer();
    const rest = (async () => {
      for (let part = await reader?.read(); part?.done === false; part = await reader?.read());
      return 'ended';
    })();
    await control.stop();
    expect((await poll).status).toBe(304);
    expect(await rest).toBe('ended');

    control = await startAt(home);
    const { items } = sidecarsPage.parse(await (await asUser('GET', '/v1/sidecars')).json());
    expect(items[0]?.last_seen_at).toEqual(expect.any(String));
  });

  // What is stored is kept by the same code on both.
  test.each(startAt === startNodeAt ? [''] : ONLY_FULL)('keeps everything that it acknowledged%s', async () => {
    control = await startAt(home);
    const lanes = [1, 2, 3, 4].map((lane) => storeUntilGone(lane));
    await asUser('GET', '/v1/ready');
    await control.stop();
    const stored = (await Promise.all(lanes)).flat();
    control = await startAt(home);
    const { items } = secretsPage.parse(await (await asUser('GET', '/v1/secrets?limit=500')).json());
    expect(items.map(({ path }) => path)).toEqual(expect.arrayContaining(stored));
  });
});
