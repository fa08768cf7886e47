import { createServer, type Server } from 'node:http';
import { Provider } from 'oidc-provider';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { listen } from '../../../e2e/support/tls_upstream.ts';
import { errorBody } from '../../../shared/wire/errors.ts';
import { joinReply, serviceAccountRecord } from '../../../shared/wire/service_accounts.ts';
import { fetchOutbound } from '../../kernel/fetch_outbound.ts';

const AUDIENCE = 'https://control.example.test';
const JOB = { repository: 'acme/app', ref: 'refs/heads/main', environment: 'production' };
const tokenReply = z.object({ access_token: z.string() });

let server: Server;
let issuer: string;
let control: InProcess;
beforeEach(async () => {
  server = createServer();
  issuer = `http://127.0.0.1:${await listen(server)}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'job',
        client_secret: 'client-secret-of-a-test',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          scope: 'join',
          audience: resource,
          accessTokenTTL: 300,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    extraTokenClaims: () => JOB,
  });
  server.on('request', provider.callback());
  control = await startInProcess({ outbound: fetchOutbound(true) });
  // The provider's clock is the machine's.
  control.clock.ms = Date.now();
});
afterEach(async () => {
  await control.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function tokenFor(resource: string): Promise<string> {
  const reply = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('job:client-secret-of-a-test')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope: 'join' }),
  });
  return (await parseReply(tokenReply, reply)).access_token;
}

it('a job joins with the token of a real issuer, once, and only for its audience and rules', async () => {
  const policy = { name: 'job', issuer, audience: AUDIENCE, claims: { repository: 'acme/app', ref: 'refs/heads/*' } };
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

  const token = await tokenFor(AUDIENCE);
  sidecar.enrolled = await parseReply(joinReply, join(token));
  expect((await sidecar.call('GET', '/v1/sidecar/snapshot')).status).toBe(200);
  expect(await reasonOf(token)).toBe('used_before');
  expect(await reasonOf(await tokenFor('https://other.example.test'))).toBe('audience');
  const stricter = { ...policy, claims: { ...policy.claims, environment: 'staging' } };
  await control.asUser('PUT', `/v1/service-accounts/${account.id}`, stricter);
  expect(await reasonOf(await tokenFor(AUDIENCE))).toBe('claims');
});
