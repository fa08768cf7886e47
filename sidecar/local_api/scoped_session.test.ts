import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { refusal } from '../../shared/model/refusal.ts';
import { err, ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { LocalApiBench, sandboxInput } from '../testing/local_api_bench.ts';

// Sessions that narrow a secret (decision 0119), as the local API opens them.

const SCOPE = { reference: 'vault://ci/github', narrowing: { repositories: ['website'] } };
const SESSIONS = '/v1/sandbox-proxy/sessions';

let bench: LocalApiBench;
let minted: (string | null)[];
beforeEach(async () => {
  bench = await LocalApiBench.start();
  minted = [];
  bench.scopedSources = (sessionId) => ({
    resolve: () => {
      minted.push(sessionId);
      return ok({ secret: new Secret('narrow'), version: '1' });
    },
    isStored: () => true,
    findStoredVersion: () => null,
  });
});
afterEach(() => bench.stop());

const open = (body: object) => bench.call('POST', SESSIONS, body);

describe('a session that narrows a secret', () => {
  it('has its value minted before it starts, and shows what it narrows', async () => {
    const { id, body } = await bench.createSession({ scopes: [SCOPE] });
    expect(new Set(minted)).toEqual(new Set([id]));
    expect(JSON.stringify(body)).not.toContain('narrow');
    expect((await bench.call('GET', `${SESSIONS}/${id}`)).body).toMatchObject({ scopes: [SCOPE] });
  });

  it('does not start if its secret cannot be narrowed, and leaves no session', async () => {
    const message = 'vault://ci/github cannot be narrowed: repositories: "website" is not one of those of the source';
    bench.scopedSources = () => ({
      resolve: () => err(refusal('credential_unavailable', message)),
      isStored: () => true,
      findStoredVersion: () => null,
    });
    const reply = await open({ scopes: [SCOPE] });
    expect([reply.status, reply.code, reply.text.includes('is not one of those')]).toEqual([
      400,
      'invalid_input',
      true,
    ]);
    expect(bench.sessions.list()).toEqual([]);
  });

  it('does not start for a secret that nothing uses', async () => {
    bench.isStored = false;
    const reply = await open({ scopes: [SCOPE] });
    expect([reply.status, reply.text.includes('no binding and no connector')]).toEqual([400, true]);
    expect([minted, bench.sessions.list()]).toEqual([[], []]);
  });

  it.each([
    ['twice', { scopes: [SCOPE, SCOPE] }, 'twice'],
    ['by no reference', { scopes: [{ ...SCOPE, reference: 'vault://connectors/a/b' }] }, 'reserved'],
    ['to nothing', { scopes: [{ ...SCOPE, narrowing: {} }] }, 'names no field'],
    ['by an unknown field', { scopes: [{ ...SCOPE, narrowing: { branches: ['main'] } }] }, 'branches'],
  ])('does not start if it names the secret %s', async (_, body, message) => {
    const reply = await open(body);
    expect([reply.status, reply.text.includes(message)]).toEqual([400, true]);
    expect(bench.sessions.list()).toEqual([]);
  });

  it('does not hand the whole value to its program, at its start or later', async () => {
    const unsealed = { env: 'TOKEN', reference: SCOPE.reference, host: 'api.github.com', reason: 'pinned' };
    const sandbox = sandboxInput();
    const start = await open({ scopes: [SCOPE], sandbox: { ...sandbox, unsealed: [unsealed] } });
    expect([start.status, start.text.includes('no program gets its value')]).toEqual([400, true]);
    const { id } = await bench.createSession({ scopes: [SCOPE] });
    const later = await bench.call('POST', '/v1/sandbox-proxy/unsealed', { session_id: id, ...unsealed });
    expect([later.status, later.text.includes('no program gets its value')]).toEqual([400, true]);
  });
});
