import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, startInProcess } from '../e2e/runtimes/in_process.ts';
import { meReply } from '../shared/wire/account.ts';
import { auditVerification } from '../shared/wire/audit_events.ts';
import { EVENTS_TYP, eventsPayload } from '../shared/wire/channel.ts';
import { ERROR_STATUS, errorBody } from '../shared/wire/errors.ts';
import { secretsPage } from '../shared/wire/secrets.ts';

let control: InProcess;
beforeEach(async () => {
  control = await startInProcess();
});
afterEach(() => control.stop());

async function refusal(reply: Response | Promise<Response>) {
  const answered = await reply;
  const { error } = errorBody.parse(await answered.json());
  expect(answered.status).toBe(ERROR_STATUS[error.code]);
  return error;
}

/** Stores a secret with a raw request body. */
function post(body: string | Uint8Array<ArrayBuffer>): Promise<Response> {
  const headers = { authorization: `Bearer ${control.localKey}`, 'content-type': 'application/json' };
  return control.send('/v1/secrets', { method: 'POST', headers, body });
}
const listSecrets = async () => secretsPage.parse(await (await control.asUser('GET', '/v1/secrets')).json()).items;

describe('a body', () => {
  test('that is not valid UTF-8 is refused, because other bytes would be stored than were sent', async () => {
    const body = new Uint8Array([...Buffer.from('{"path":"a","value":"p'), 0xe4, ...Buffer.from('ss"}')]);
    expect((await refusal(post(body))).message).toContain('not UTF-8');
    expect(await listSecrets()).toEqual([]);
  });

  test.each([
    ['half a million brackets', '['.repeat(500_000)],
    ['as many that are closed again', '['.repeat(250_000) + ']'.repeat(250_000)],
    ['a field as deep as that', `{"path":${'['.repeat(250_000)}${']'.repeat(250_000)},"value":"v"}`],
    ['objects in objects', '{"path":'.repeat(50_000) + '1' + '}'.repeat(50_000)],
  ])('of %s is an ordinary error', async (_, body) => {
    expect(['invalid_json', 'invalid_input']).toContain((await refusal(post(body))).code);
  });

  test.each(['__proto__', 'constructor', 'toString'])('with a field %s is read the same as without it', async (key) => {
    const body = `{"path":"a","value":"v",${JSON.stringify(key)}:{"owner":"enterprise"}}`;
    expect(await refusal(post(body))).toMatchObject({ code: 'invalid_input', details: { fields: [{ field: key }] } });
    expect(await listSecrets()).toEqual([]);
  });

  test('with very many or very long invalid fields gets a short answer', async () => {
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`k${n}`, 1]));
    expect((await (await post(JSON.stringify(many))).text()).length).toBeLessThan(5_000);
    const long = JSON.stringify({ ['k'.repeat(500_000)]: 1 });
    expect((await (await post(long)).text()).length).toBeLessThan(1_000);
  });

  test.each([
    ['\ud800', 'Unicode'],
    ['two\nlines', 'line break'],
    ['a\u202eb', 'control character'],
  ])('does not put %j into text that people read', async (line, problem) => {
    const described = control.asUser('POST', '/v1/secrets', { path: 'a', value: 'v', description: line });
    expect((await refusal(described)).message).toContain(`description ${problem === 'Unicode' ? 'is' : 'contains'}`);
    const named = control.asUser('POST', '/v1/sidecars', { name: line, signing_key: {}, receiving_key: {} });
    const { details } = await refusal(named);
    expect(details).toMatchObject({
      fields: [{ field: 'name', message: expect.stringContaining(problem) }, {}, {}, {}, {}],
    });
  });
});

describe('an unsupported method', () => {
  test.each([
    ['PATCH', '/v1/secrets', 'POST, GET, HEAD'],
    ['POST', '/v1/secrets/a/b/c', 'DELETE'],
    ['POST', '/', 'GET, HEAD'],
    ['PUT', '/auth/link/x', 'GET, HEAD'],
  ])('%s %s is answered with the supported methods', async (method, path, allow) => {
    const reply = await control.asUser(method, path);
    expect(reply.headers.get('allow')).toBe(allow);
    expect(await refusal(reply)).toMatchObject({ code: 'method_not_allowed' });
  });

  test.each(['%0A', 'a%0Ab', '%00', '%E2%80%A8', '%ff', 'a%2F%0A'])(
    'is not checked for the secret %s',
    async (path) => {
      expect(await refusal(control.send(`/v1/secrets/${path}`, { method: 'DELETE' }))).toMatchObject({
        code: 'unauthenticated',
      });
      expect((await refusal(control.asUser('DELETE', `/v1/secrets/${path}`))).message).toContain('no personal secret');
      expect(await refusal(control.asUser('PUT', `/v1/secrets/${path}`))).toMatchObject({ code: 'method_not_allowed' });
    },
  );

  test('does not normalise an unknown path into one of ours', async () => {
    expect(await refusal(control.asUser('GET', '/v1/secretsx'))).toMatchObject({ code: 'not_found' });
    expect(await refusal(control.asUser('GET', '/openapiXjson'))).toMatchObject({ code: 'not_found' });
  });
});

/** From here on a waiting call ends only when its caller disconnects. */
function standStill(): void {
  control.clock.sleep = (_milliseconds, signal) =>
    new Promise<void>((resolve) => {
      signal?.addEventListener('abort', () => resolve());
    });
}
const stream = (method = 'GET') => control.asUser(method, '/v1/audit-events/stream');

describe('long-lived calls', () => {
  test('for audit streams are limited to 32 per user, and a closed one frees its slot', async () => {
    standStill();
    const open = await Promise.all(Array.from({ length: 32 }, () => stream()));
    expect(new Set(open.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await refusal(stream())).toMatchObject({ code: 'too_many_open_calls' });
    await open[0]?.body?.cancel();
    expect((await stream()).status).toBe(200);
  });

  test('free their slot when their time is up, even if the disconnect was never reported', async () => {
    standStill();
    await Promise.all(Array.from({ length: 32 }, () => stream()));
    control.clock.ms += 16 * 60_000;
    expect((await stream()).status).toBe(200);
  });

  test('are not counted for a HEAD request', async () => {
    for (let n = 0; n < 40; n += 1) expect((await stream('HEAD')).status).toBe(200);
  });

  test('for polls are limited to 8 per sidecar, and a cancelled one frees its slot', async () => {
    const sidecar = await control.enrolSidecar();
    standStill();
    const poll = async (_: unknown, number: number) => {
      const target = '/v1/sidecar/snapshot?wait=20';
      const authorization = `Bearer ${await sidecar.token(await sidecar.claims('GET', target, ''))}`;
      const gone = new AbortController();
      const reply = control.send(target, { headers: { authorization, 'if-none-match': '"0"' }, signal: gone.signal });
      return { number, gone, reply };
    };
    const polls = await Promise.all(Array.from({ length: 9 }, poll));
    const refused = await Promise.race(polls.map(async ({ number, reply }) => ({ number, reply: await reply })));
    expect(await refusal(refused.reply)).toMatchObject({ code: 'too_many_open_calls' });
    const waiting = polls.find(({ number }) => number !== refused.number);
    waiting?.gone.abort();
    expect((await waiting?.reply)?.status).toBe(304);
  });

  test('for verifications are limited to two per enterprise, and a finished one frees its slot', async () => {
    const { enterprise_id: enterprise } = meReply.parse(await (await control.asUser('GET', '/v1/me')).json());
    const [leave] = [1, 2].map(() => control.context.openCalls.enter('audit verification', enterprise));
    const verify = () => control.asUser('GET', '/v1/audit-events/verify');
    expect(await refusal(verify())).toMatchObject({ code: 'too_many_open_calls' });
    if (leave?.ok) leave.value();
    for (let n = 0; n < 3; n += 1) expect((await verify()).status).toBe(200);
  });

  test('end when the database fails, so that the client asks again and gets the error', async () => {
    const reader = (await stream()).body?.getReader();
    await reader?.read();
    control.context.database.client.close();
    expect(await reader?.read()).toMatchObject({ done: true });
    expect(await refusal(stream())).toMatchObject({ code: 'database_unavailable' });
  });
});

const event = (n: number, change: object) => ({
  id: `evt_0000000000000000000000000${n}`,
  type: 'sandbox.proxy.passthrough',
  time: '2026-01-01T00:00:00.000Z',
  sidecar_id: null,
  session_id: 'ses_1',
  actor: 'session',
  data: {},
  ...change,
});
async function send(...events: object[]) {
  const sidecar = await control.enrolSidecar();
  const reply = await sidecar.call('POST', '/v1/sidecar/events', { body: { events } });
  return sidecar.verify(await reply.text(), EVENTS_TYP, eventsPayload);
}

describe('an event from a hostile sidecar', () => {
  test.each([
    ['half of a surrogate pair as its session', { session_id: '\ud800' }],
    ['a NUL as its actor', { actor: 'a\0b' }],
    ['half of a surrogate pair in its path', { data: { 'svc.proxy.upstream.path': '/\udc00' } }],
    ['an unknown field', { data: { ['x'.repeat(10_000)]: 1 } }],
  ])('with %s does not block the other events', async (_, change) => {
    const outcome = await send(event(1, change), event(2, {}));
    expect(outcome).toMatchObject({ accepted: [event(2, {}).id], rejected: [{ index: 0 }] });
    expect(outcome.rejected[0]?.message.length).toBeLessThan(200);
  });

  test('with a path cut inside a surrogate pair is stored, and its chain verifies', async () => {
    const path = `/${'a'.repeat(4_094)}${'\u{1f600}'.repeat(100)}`;
    expect((await send(event(1, { data: { 'svc.proxy.upstream.path': path } }))).rejected).toEqual([]);
    const verified = await control.asUser('GET', '/v1/audit-events/verify');
    expect(auditVerification.parse(await verified.json())).toMatchObject({ ok: true });
  });
});
