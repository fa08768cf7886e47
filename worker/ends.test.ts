import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { itemsSpec } from '../e2e/runtimes/connector_samples.ts';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { ok } from '../shared/model/result.ts';
import { CREDENTIALS_TYP, credentialsPayload, sealedCredential } from '../shared/wire/channel.ts';
import { installReply } from '../shared/wire/connectors/connectors.ts';
import type { Outbound } from './kernel/outbound.ts';
import { SeenEnds } from './kernel/seen_ends.ts';

/** The ends of what providers issue, whatever time they take. */

const TOKEN_URL = 'https://idp.example.com/token';
const RUNS = { numRuns: 20, seed: 23 };

interface ProviderAnswer {
  /** The request and the reply are so long on their way. */
  readonly thereMs: number;
  readonly backMs: number;
  /** So far the clock of the control plane is set back meanwhile; not that of the provider. */
  readonly setBackOnWayMs?: number;
  readonly lifeSeconds: number;
  readonly isDown: boolean;
}

let control: InProcess;
let sidecar: TestSidecar;
let next: ProviderAnswer;
/** When each token ends, by the clock of the provider, which nobody sets. */
let ends: Map<string, number>;
/** When each token was issued, by the control plane's clock, and how often it had been restarted. */
let issues: Map<string, { readonly atMs: number; readonly restarts: number }>;
let restarts: number;

/** A stub: it answers as RFC 6749 section 5.1 says, and a request to any other host with 200. */
const outbound: Outbound = {
  async call() {
    const { thereMs, backMs, setBackOnWayMs = 0, lifeSeconds, isDown } = next;
    control.clock.ms += thereMs;
    control.clock.setBackMs += setBackOnWayMs;
    const token = `issued-${ends.size + 1}-secret`;
    if (!isDown) {
      ends.set(token, control.clock.ms + lifeSeconds * 1000);
      issues.set(token, { atMs: control.clock.now(), restarts });
    }
    const issued = { access_token: token, refresh_token: 'next', token_type: 'Bearer', expires_in: lifeSeconds };
    control.clock.ms += backMs;
    const body = new TextEncoder().encode(JSON.stringify(isDown ? {} : issued));
    return ok({ status: isDown ? 503 : 200, contentType: 'application/json', body });
  },
};

beforeEach(async () => {
  ends = new Map();
  issues = new Map();
  restarts = 0;
  next = { thereMs: 0, backMs: 0, lifeSeconds: 600, isDown: false };
  control = await startInProcess({ outbound });
  sidecar = await control.enrolSidecar();
});
afterEach(() => control.stop());

const bind = (reference: string) =>
  control.asUser('POST', '/v1/host-bindings', { host: 'a.test', scheme: 'bearer', credential_ref: reference });

/** A secret that a source mints. */
async function minted(): Promise<string> {
  const source = { kind: 'client_credentials', token_url: TOKEN_URL, client_id: 'ci', scopes: ['repo:read'] };
  await control.asUser('POST', '/v1/secret-sources', { path: 'ci/token', source, key: 'the-client-secret' });
  await bind('vault://ci/token');
  return 'ci/token';
}

/** A connector whose access token is refreshed. */
async function refreshed(): Promise<string> {
  const spec = itemsSpec('1.0.0', { credential: { kind: 'oauth2', scopes: ['openid'] } });
  const { id } = await parseReply(installReply, control.asUser('POST', '/v1/connectors', spec));
  await control.asUser('PUT', `/v1/connectors/${id}/credential`, {
    kind: 'oauth2',
    client_id: 'ci',
    client_secret: 'the-client-secret',
    token_url: TOKEN_URL,
    access_token: 'first-token',
    refresh_token: 'first',
    expires_at: new Date(control.clock.now()).toISOString(),
  });
  return 'connectors/acme/items';
}

async function release(path: string) {
  const body = { request_id: crypto.randomUUID(), credentials: [{ owner: 'personal', path }] };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  const payload = await sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
  const [credential] = payload.credentials;
  if (credential === undefined) return { given: null, unavailable: payload.unavailable };
  const { value } = sealedCredential.parse(await sidecar.unseal(credential.sealed));
  return { given: { value, until: Date.parse(credential.expires_at ?? '') }, unavailable: [] };
}

const delay = fc.constantFrom(0, 0, 2_000, 9_000, 25_000);
const step = fc.record({
  laterMs: fc.oneof(fc.constantFrom(10_000, 45_000, 85_000), fc.integer({ min: 0, max: 300_000 })),
  thereMs: delay,
  backMs: delay,
  lifeSeconds: fc.constantFrom(20, 60, 120, 600),
  isDown: fc.boolean(),
});

const AT_ONCE = { thereMs: 0, backMs: 0, lifeSeconds: 120, isDown: false } as const;
/** The value that is left ends while the provider takes its time to refuse another one. */
const SLOW_REFUSAL = [
  { laterMs: 0, ...AT_ONCE },
  { laterMs: 75_000, ...AT_ONCE, thereMs: 25_000 as const, backMs: 25_000 as const, isDown: true },
];

describe.each([
  ['a minted secret', minted],
  ['the access token of a connector', refreshed],
])('%s', (_what, store) => {
  test('is released only before its end, and never with a later one', async () => {
    const path = await store();
    let count = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
        for (const { laterMs, ...answer } of steps) {
          control.clock.ms += laterMs;
          next = answer;
          const { given, unavailable } = await release(path);
          const now = control.clock.now();
          count += given === null ? 0 : 1;
          const { value, until } = given ?? { value: '', until: Number.NaN };
          const isInTime = until > now && until <= (ends.get(value) ?? 0);
          const isRefused = given === null && unavailable[0]?.reason === 'credential_unavailable';
          expect(isInTime || isRefused).toBe(true);
        }
      }),
      { ...RUNS, examples: [[SLOW_REFUSAL]] },
    );
    expect(count).toBeGreaterThan(RUNS.numRuns);
  });
});

interface BadStep extends Required<ProviderAnswer> {
  readonly laterMs: number;
  readonly setBackMs: number;
  readonly isRestarted: boolean;
}

const jump = fc.constantFrom(0, 0, 0, -90_000, 8_000, 50_000, 400_000, 3_600_000);
const badStep: fc.Arbitrary<BadStep> = fc.record({
  laterMs: fc.constantFrom(0, 10_000, 45_000, 85_000, 300_000),
  setBackMs: jump,
  setBackOnWayMs: jump,
  isRestarted: fc.constantFrom(false, false, false, true),
  thereMs: delay,
  backMs: delay,
  lifeSeconds: fc.constantFrom(20, 60, 120, 600),
  isDown: fc.boolean(),
});
/** It ends after ten minutes. A minute before, the clock goes back. */
const BACK_BEFORE_THE_END: BadStep[] = [
  { laterMs: 0, ...AT_ONCE, lifeSeconds: 600 },
  { laterMs: 500_000, ...AT_ONCE, isDown: true },
  { laterMs: 0, ...AT_ONCE, isDown: true, setBackMs: 400_000 },
  { laterMs: 300_000, ...AT_ONCE, isDown: true },
].map((each) => ({ setBackMs: 0, setBackOnWayMs: 0, isRestarted: false, ...each }));
const BACK_BEFORE_A_RESTART = BACK_BEFORE_THE_END.map((each, index) => ({
  ...each,
  ...(index === 2 && { setBackMs: 3_600_000, isRestarted: true }),
}));

/** A program that has just started has seen no end. */
function restart(): void {
  restarts += 1;
  Object.assign(control.context, { seenEnds: new SeenEnds(control.clock) });
}

/** Whether a value was given in time, or no clock of a program that was restarted since can show that it was not. */
function isAllowed({ value, until }: { readonly value: string; readonly until: number }): boolean {
  const { ms } = control.clock;
  const now = control.clock.now();
  const endsAtMs = ends.get(value) ?? 0;
  if (ms < endsAtMs && until > now && until - now <= endsAtMs - ms) return true;
  const issued = issues.get(value);
  return issued !== undefined && issued.restarts < restarts && now >= issued.atMs - 10_000;
}

describe.each([
  ['a minted secret', minted],
  ['the access token of a connector', refreshed],
])('%s', (_what, store) => {
  test('is released only before its end, also if the clock is set and the program starts again', async () => {
    const path = await store();
    let count = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(badStep, { minLength: 1, maxLength: 8 }), async (steps) => {
        for (const { laterMs, setBackMs, isRestarted, ...answer } of steps) {
          control.clock.ms += laterMs;
          control.clock.setBackMs += setBackMs;
          if (isRestarted) restart();
          next = answer;
          const { given, unavailable } = await release(path);
          count += given === null ? 0 : 1;
          const isRefused = given === null && unavailable[0]?.reason === 'credential_unavailable';
          expect(given === null ? isRefused : isAllowed(given)).toBe(true);
        }
      }),
      { ...RUNS, numRuns: 40, examples: [[BACK_BEFORE_THE_END], [BACK_BEFORE_A_RESTART]] },
    );
    expect(count).toBeGreaterThan(RUNS.numRuns);
  });
});
