import { afterEach, beforeEach, expect, test } from 'vitest';
import { type InProcess, startInProcess } from '../../../e2e/runtimes/in_process.ts';

let control: InProcess;
beforeEach(async () => {
  control = await startInProcess();
  const binding = { host: 'api.example.test', scheme: 'bearer', credential_ref: 'vault://user/github' };
  expect((await control.asUser('POST', '/v1/host-bindings', binding)).status).toBe(201);
});
afterEach(() => control.stop());

const explain = async (path: string, host = 'api.example.test') => {
  const use_secrets = [{ reference: `vault://${path}`, by: 'option' }];
  const body = { method: 'GET', url: `https://${host}/`, use_secrets };
  const reply = await control.asUser('POST', '/v1/host-bindings/explain', body);
  return { status: reply.status, text: await reply.text() };
};

test('a choice that no session would start with is refused, with the nearest secret', async () => {
  expect(await explain('user/githib')).toMatchObject({
    status: 400,
    text: expect.stringContaining('did you mean \\"user/github\\"?'),
  });
});

test('a host that is not opened is explained as one, and a bound host below a listed wildcard is not', async () => {
  expect((await control.asUser('POST', '/v1/tunnel-hosts', { host: '*.example.test' })).status).toBe(201);
  const ask = async (host: string) =>
    (await control.asUser('POST', '/v1/host-bindings/explain', { method: 'GET', url: `https://${host}/` })).text();
  expect(await ask('other.example.test')).toContain('not opened');
  expect(await ask('api.example.test')).not.toContain('not opened');
});

test('a chosen secret may be bound at another host than that of the request', async () => {
  expect((await explain('user/github')).status).toBe(200);
  expect((await explain('user/github', 'other.example.test')).status).toBe(200);
});
