import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type GrpcUpstream, startGrpcUpstream } from './support/grpc_upstream.ts';
import { OpenRun } from './support/open_run.ts';
import { plantSecret } from './support/planted_secret.ts';
import { Svc } from './support/svc.ts';
import { createTestCa } from './support/test_ca.ts';

// A program that calls a server of gRPC, through the real proxy.

const CLIENT = join(import.meta.dirname, 'clients', 'grpc_client.mjs');
const PLAIN = 'plain.example.test';
const BOUND = 'bound.example.test';
const READ = 'read.example.test';
const GONE = 'gone.example.test';
const TOKEN = plantSecret();
const EFFECT_NOT_ALLOWED = /^effect_not_allowed: /;
let upstream: GrpcUpstream;
let svc: Svc;
let opened: OpenRun;

const call = async (host: string, messages = 20): Promise<unknown> =>
  JSON.parse(await opened.ok([process.execPath, CLIENT, `${host}:443`, String(messages)]));

beforeAll(async () => {
  const ca = await createTestCa();
  upstream = await startGrpcUpstream(await ca.issue([PLAIN, BOUND, READ]));
  const resolve = [PLAIN, BOUND, READ].map((host) => `${host}:127.0.0.1:${upstream.port}`);
  svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve: [...resolve, `${GONE}:127.0.0.1:1`] });
  await svc.secret('user/api', TOKEN);
  const bound = {
    scheme: 'header-template',
    header: 'X-Api-Key',
    template: '{token}',
    credential_ref: 'vault://user/api',
  };
  await svc.binding({ host: BOUND, ...bound, body: 'stream' });
  await svc.binding({ host: READ, ...bound, effect: 'read' });
  opened = await OpenRun.start(svc.home);
});
afterAll(async () => {
  await opened.end();
  await svc.stop();
  upstream.close();
});
beforeEach(() => void upstream.calls.splice(0));

const ALL = {
  unary: { reply: 'echo a', head: 'head', tail: 'tail' },
  down: [0, '0', '1', '2'],
  up: { reply: 'a,b,c' },
  both: [0, 20],
  fail: { code: 5, details: '100% gone: ü', tail: 'why' },
  wait: { code: 4, details: expect.stringContaining('Deadline exceeded') },
};

describe('@grpc/grpc-js', () => {
  it('makes calls of every form without a binding: metadata, trailers, statuses and deadlines', async () => {
    expect(await call(PLAIN)).toEqual(ALL);
    expect(upstream.calls.map(({ method }) => method)).toEqual(['unary', 'down', 'up', 'both', 'fail', 'wait']);
    expect(upstream.calls[0]?.metadata).toMatchObject({
      'x-note': 'from the agent',
      'x-note-bin': Buffer.of(0, 255, 1),
    });
    expect(upstream.calls.every(({ metadata }) => metadata['x-api-key'] === undefined)).toBe(true);
    await expect.poll(() => upstream.cancelled()).toBe(1);
  });

  it('makes the same calls with a credential in the metadata that it does not hold', async () => {
    expect(await call(BOUND)).toEqual(ALL);
    expect(upstream.calls).toHaveLength(6);
    expect(upstream.calls.every(({ metadata }) => metadata['x-api-key'] === TOKEN)).toBe(true);
    const events = (await svc.events()).filter(({ type }) => type === 'sandbox.proxy.binding_injected');
    expect(events.map(({ data }) => data['svc.proxy.upstream.path'])).toContain('/demo.Echo/Both');
  });

  it('reads the code of a refusal as a status of gRPC', async () => {
    expect(await call(READ)).toEqual({ unary: { code: 7, details: expect.stringMatching(EFFECT_NOT_ALLOWED) } });
    expect(await call(GONE)).toEqual({
      unary: { code: 14, details: expect.stringMatching(/^upstream_unreachable: /) },
    });
    expect(upstream.calls).toEqual([]);
  });
});
