import { createClient } from '@libsql/client/web';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { errorBody } from '../../shared/wire/errors.ts';
import { fetchInTime, openDatabase } from '../../worker/store/database.ts';
import { type InProcess, startInProcess } from './in_process.ts';
import { startLibsqlServer } from './programs.ts';
import type { TestSidecar } from './sidecar_client.ts';

let control: InProcess;
let sidecar: TestSidecar;

beforeAll(async () => {
  const server = await startLibsqlServer();
  control = await startInProcess({ database: openDatabase(createClient({ url: server.url, fetch: fetchInTime })) });
  sidecar = await control.enrolSidecar();
  await server.stop();
});
afterAll(() => control.stop());

const BINDING = { host: 'a.example.test', scheme: 'bearer', credential_ref: 'vault://a' };
const REQUEST = { request_id: 'request-of-the-test', credentials: [{ owner: 'personal', path: 'a' }] };

test.each<[string, () => Promise<Response>]>([
  ['a list', () => control.asUser('GET', '/v1/secrets')],
  ['a write', () => control.asUser('POST', '/v1/secrets', { path: 'a', value: 'v' })],
  ['a binding', () => control.asUser('POST', '/v1/host-bindings', BINDING)],
  ['the health', () => control.send('/v1/health')],
  ['the readiness', () => control.send('/v1/ready')],
  ['the first page', () => control.inBrowser('/', { headers: { cookie: 'svc_session=x' } })],
  ['a sign-in link', () => control.inBrowser('/auth/link/x')],
  ['the stream', () => control.asUser('GET', '/v1/audit-events/stream')],
  ['the snapshot', () => sidecar.call('GET', '/v1/sidecar/snapshot')],
  ['credentials', () => sidecar.call('POST', '/v1/sidecar/credentials', { body: REQUEST })],
  ['events', () => sidecar.call('POST', '/v1/sidecar/events', { body: { events: [{}] } })],
])('a stopped database server is reported as unavailable by %s', async (_, call) => {
  const reply = await call();
  const { error } = errorBody.parse(await reply.json());
  expect([reply.status, error.code]).toEqual([503, 'database_unavailable']);
  expect(error.message).not.toMatch(/127\.0\.0\.1|SELECT|INSERT/i);
});
