import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type InProcess, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { REVOCATION_TYP, revocationProof } from '../../../shared/wire/channel.ts';
import { errorBody } from '../../../shared/wire/errors.ts';
import { authenticateCall, type SidecarCall } from './sidecar_calls.ts';

let control: InProcess;
let sidecar: TestSidecar;
beforeAll(async () => {
  control = await startInProcess();
  sidecar = await control.enrolSidecar();
});
afterAll(() => control.stop());

const TARGET = '/v1/sidecar/credentials?x=1';
const BODY = '{"a":1}';

/** A valid call, with some claims or parts of it changed. */
async function call(claims: object = {}, arrived: Partial<SidecarCall> = {}, typ?: string) {
  const token = await sidecar.token({ ...(await sidecar.claims('POST', TARGET, BODY)), ...claims }, typ);
  const arriving = { token, method: 'POST', target: TARGET, readBody: async () => bytes(BODY) };
  return authenticateCall(control.context, { ...arriving, ...arrived });
}
const unreadable = () => Promise.reject(new Error('the body was read'));
const bytes = (text: string) => new TextEncoder().encode(text);
const seconds = () => Math.floor(control.clock.now() / 1000);

describe("a sidecar's call", () => {
  test('is accepted if everything matches', async () => {
    expect(await call()).toMatchObject({ ok: true, value: { sidecarId: sidecar.enrolled.sidecar_id } });
  });

  test.each([
    ['another control plane', { aud: 'cpl_00000000000000000000000000' }],
    ['another method', { htm: 'GET' }],
    ['another path', { htu: '/v1/sidecar/events' }],
    ['another query', { htu: '/v1/sidecar/credentials?x=2' }],
    ['another body', { bd: 'A'.repeat(43) }],
    ['no end', { exp: undefined }],
    ['a claim nobody knows', { scope: 'all' }],
    ['no one-time id', { jti: undefined }],
  ])('is refused when its token is for %s', async (_, claims) => {
    expect(await call(claims)).toMatchObject({ ok: false, error: { code: 'invalid_sidecar_call' } });
  });

  test('is refused if it would be valid for more than a minute', async () => {
    expect(await call({ exp: seconds() + 61 })).toMatchObject({ error: { code: 'invalid_sidecar_call' } });
  });

  test.each([-61, 61])('is refused with our time if its clock is off by %d s', async (offset) => {
    const iat = seconds() + offset;
    expect(await call({ iat, exp: iat + 30 })).toMatchObject({
      error: { code: 'clock_skew', details: { server_time: new Date(control.clock.now()).toISOString() } },
    });
  });

  test.each([-58, 58])('is accepted if its clock is off by %d s', async (offset) => {
    const iat = seconds() + offset;
    expect(await call({ iat, exp: iat + 30 })).toMatchObject({ ok: true });
  });

  test('is refused if its body differs from the signed one', async () => {
    expect(await call({}, { readBody: async () => bytes('{"a":2}') })).toMatchObject({ ok: false });
  });

  test('is refused as a token of another type', async () => {
    expect(await call({}, {}, 'JWT')).toMatchObject({ error: { code: 'invalid_sidecar_call' } });
  });

  test('is refused with another key, without revealing anything about the sidecar', async () => {
    const other = await control.enrolSidecar();
    const token = await other.token(await sidecar.claims('POST', TARGET, BODY));
    expect(await call({}, { token })).toMatchObject({ error: { code: 'invalid_sidecar_call' } });
  });

  test.each(['', 'x', 'a.b.c', 'eyJhbGciOiJub25lIn0.eyJpc3MiOiJzZGNfMCJ9.'])(
    'is refused with the token %j',
    async (token) => {
      expect(await call({}, { token })).toMatchObject({ error: { code: 'invalid_sidecar_call' } });
    },
  );

  test('has its body read only if a sidecar signed it', async () => {
    const other = await control.enrolSidecar();
    const token = await other.token(await sidecar.claims('POST', TARGET, BODY));
    expect(await call({}, { token, readBody: unreadable })).toMatchObject({ error: { code: 'invalid_sidecar_call' } });
    await expect(call({}, { readBody: unreadable })).rejects.toThrow('the body was read');
  });

  test('is accepted once, also if two arrive at the same time or time has passed', async () => {
    const jti = 'one-time-id-of-this-test';
    const both = await Promise.all([call({ jti }), call({ jti })]);
    expect(both.filter((result) => result.ok)).toHaveLength(1);
    control.clock.ms += 59_000;
    const iat = seconds() - 59;
    expect(await call({ jti, iat, exp: iat + 60 })).toMatchObject({ error: { code: 'replayed_call' } });
  });

  test("of a revoked sidecar gets a signed refusal, but only if it proves that it holds the sidecar's key", async () => {
    const gone = await control.enrolSidecar();
    await control.asUser('DELETE', `/v1/sidecars/${gone.enrolled.sidecar_id}`);
    const claims = { jti: 'nonce-of-the-revoked-call' };
    const { error } = errorBody.parse(await (await gone.call('GET', '/v1/sidecar/snapshot', { claims })).json());
    expect(error.code).toBe('sidecar_revoked');
    const proof = await gone.verify(String(error.details?.['proof']), REVOCATION_TYP, revocationProof);
    expect(proof).toMatchObject({ sidecar_id: gone.enrolled.sidecar_id, nonce: claims.jti });
    const forged = await sidecar.token({ ...(await gone.claims('POST', TARGET, BODY)) });
    expect(await call({}, { token: forged })).toMatchObject({ error: { code: 'invalid_sidecar_call' } });
  });
});
