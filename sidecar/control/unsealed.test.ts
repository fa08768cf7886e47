import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { errorReply, FakeControlPlane } from '../testing/fake_control_plane.ts';
import { createControlChannel } from './channel.ts';
import type { ControlChannel } from './control_channel.ts';
import { createHttpClient, type HttpClient } from '../../machine/http_call.ts';
import { generateSidecarKeys, identityOf } from '../../machine/sidecar_identity.ts';
import { Link } from './link.ts';
import { releaseUnsealed } from './unsealed.ts';

const WANTED = { path: 'user/demo', host: 'api.example.test', reason: 'it pins its certificate' };

const CLOCK = { now: () => Date.parse('2026-01-02T03:04:05.678Z') };

let plane: FakeControlPlane;
let channel: ControlChannel;
let http: HttpClient;
let link: Link;

beforeEach(async () => {
  plane = new FakeControlPlane();
  await plane.start();
  const keys = await generateSidecarKeys();
  const record = await plane.adopt({ signing_key: keys.signing, receiving_key: keys.receiving });
  http = createHttpClient({ baseUrl: new URL(plane.url), maxReplyBytes: 1_000_000 });
  const identity = await identityOf(record);
  link = new Link();
  channel = createControlChannel({ identity, http, clock: { now: Date.now }, link, timeoutMs: 5_000 });
});

afterEach(async () => {
  http.close();
  await plane.stop();
});

describe('an unsealed credential', () => {
  it('is the requested one of the user, and its host and reason are in the record', async () => {
    plane.secrets = [{ owner: 'personal', path: 'user/demo', value: 's3cret', version: '1' }];
    const released = await releaseUnsealed(channel, WANTED, CLOCK);
    expect(released.ok && released.value.reveal()).toBe('s3cret');
    const { target, body } = plane.calls[0]!;
    expect([target, JSON.parse(body)]).toEqual([
      '/v1/sidecar/unsealed',
      {
        request_id: expect.any(String),
        reference: { owner: 'personal', path: 'user/demo' },
        host: WANTED.host,
        reason: WANTED.reason,
      },
    ]);
  });

  it("is refused with the fix if it is not stored, or is the enterprise's", async () => {
    plane.secrets = [{ owner: 'enterprise', path: 'user/demo', value: 's3cret', version: '1' }];
    expect(await releaseUnsealed(channel, WANTED, CLOCK)).toMatchObject({
      ok: false,
      error: { reason: 'credential_unavailable', message: expect.stringContaining('svc secret set user/demo') },
    });
  });

  it('is refused if its value ended on its way', async () => {
    const expires_at = new Date(CLOCK.now()).toISOString();
    plane.secrets = [{ owner: 'personal', path: 'user/demo', value: 's3cret', version: '1', expires_at }];
    expect(await releaseUnsealed(channel, WANTED, CLOCK)).toMatchObject({
      ok: false,
      error: { reason: 'credential_unavailable', message: expect.stringContaining('ended on its way') },
    });
  });

  it('is refused while the control plane is away', async () => {
    await plane.stop();
    expect(await releaseUnsealed(channel, WANTED, CLOCK)).toMatchObject({
      ok: false,
      error: { reason: 'control_plane_unavailable' },
    });
  });

  it('is refused with the reason of its provider, which is no failure of the link', async () => {
    plane.tamperReply = () => errorReply(503, 'credential_unavailable');
    expect(await releaseUnsealed(channel, WANTED, CLOCK)).toMatchObject({
      ok: false,
      error: { reason: 'credential_unavailable', message: expect.stringContaining('credential_unavailable') },
    });
    expect(link.state).toBe('connecting');
  });

  it('is refused in the reply to another call', async () => {
    plane.secrets = [{ owner: 'personal', path: 'user/demo', value: 's3cret', version: '1' }];
    plane.tamperPayload = (payload) => (payload['request_id'] = 'another-request-0000');
    expect(await releaseUnsealed(channel, WANTED, CLOCK)).toMatchObject({ ok: false });
  });

  it.each([
    ['another path', { owner: 'personal', path: 'user/other' }],
    ["the enterprise's", { owner: 'enterprise', path: 'user/demo' }],
  ] as const)('is not %s', async (_what, ref) => {
    const credential = { secret: new Secret('s3cret'), version: '1' };
    const answering = {
      fetchUnsealed: () => Promise.resolve(ok({ released: [{ ref, credential }], missing: [], unavailable: [] })),
    };
    expect(await releaseUnsealed(answering, WANTED, CLOCK)).toMatchObject({ ok: false });
  });
});
