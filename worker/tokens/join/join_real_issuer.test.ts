import { afterEach, beforeEach, expect, it } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { type JobIssuer, startJobIssuer } from '../../../e2e/runtimes/job_issuer.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { errorBody } from '../../../shared/wire/errors.ts';
import { joinReply, serviceAccountRecord } from '../../../shared/wire/service_accounts.ts';
import { fetchOutbound } from '../../kernel/fetch_outbound.ts';

const AUDIENCE = 'https://control.example.test';
const JOB = { repository: 'acme/app', ref: 'refs/heads/main', environment: 'production' };

let jobs: JobIssuer;
let control: InProcess;
beforeEach(async () => {
  jobs = await startJobIssuer(JOB);
  control = await startInProcess({ outbound: fetchOutbound(true) });
  // The provider's clock is the machine's.
  control.clock.ms = Date.now();
});
afterEach(async () => {
  await control.stop();
  await jobs.stop();
});

it('a job joins with the token of a real issuer, once, and only for its audience and rules', async () => {
  const policy = {
    name: 'job',
    issuer: jobs.issuer,
    audience: AUDIENCE,
    claims: { repository: 'acme/app', ref: 'refs/heads/*' },
  };
  const account = await parseReply(serviceAccountRecord, control.asUser('POST', '/v1/service-accounts', policy));
  const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  const keys = await sidecar.publicKeys();
  const join = (token: string) =>
    control.send('/auth/join', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ service_account: account.id, token, name: 'job', ...keys }),
    });
  const reasonOf = async (token: string) => (await parseReply(errorBody, join(token))).error.details?.['reason'];

  const token = await jobs.tokenFor(AUDIENCE);
  sidecar.enrolled = await parseReply(joinReply, join(token));
  expect((await sidecar.call('GET', '/v1/sidecar/snapshot')).status).toBe(200);
  expect(await reasonOf(token)).toBe('used_before');
  expect(await reasonOf(await jobs.tokenFor('https://other.example.test'))).toBe('audience');
  const stricter = { ...policy, claims: { ...policy.claims, environment: 'staging' } };
  await control.asUser('PUT', `/v1/service-accounts/${account.id}`, stricter);
  expect(await reasonOf(await jobs.tokenFor(AUDIENCE))).toBe('claims');
});
