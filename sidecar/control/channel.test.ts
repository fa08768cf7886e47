import { inspect } from 'node:util';
import { compactDecrypt, type CryptoKey, exportJWK, generateKeyPair } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { err } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { SNAPSHOT_PROOF_HEADER } from '../../shared/wire/channel.ts';
import { LOGIN_TOKENS_TYP, loginTokens } from '../../shared/wire/pending_logins.ts';
import { CUT, errorReply, FakeControlPlane, SILENT } from '../testing/fake_control_plane.ts';
import { createControlChannel } from './channel.ts';
import type { ControlChannel } from './control_channel.ts';
import { createHttpClient, type HttpClient } from '../../machine/http_call.ts';
import { generateSidecarKeys, type Identity, identityOf } from '../../machine/sidecar_identity.ts';
import { Link } from './link.ts';

const BINDING = {
  id: 'bnd_00000000000000000000000001',
  owner: 'personal',
  host: 'api.example.test',
  credential_ref: 'vault://user/demo',
  scheme: 'bearer',
  created_at: '2026-01-02T03:04:05.678Z',
  updated_at: '2026-01-02T03:04:05.678Z',
};
const DEMO = { owner: 'personal', path: 'user/demo' } as const;

let plane: FakeControlPlane;
let channel: ControlChannel;
let link: Link;
let enrolled: Identity;
let http: HttpClient;

beforeEach(async () => {
  plane = new FakeControlPlane();
  await plane.start();
  await enrolWith(plane);
});

afterEach(async () => {
  http.close();
  await plane.stop();
});

async function enrolWith(controlPlane: FakeControlPlane): Promise<void> {
  const keys = await generateSidecarKeys();
  const record = await controlPlane.adopt({ signing_key: keys.signing, receiving_key: keys.receiving });
  link = new Link();
  http = createHttpClient({ baseUrl: new URL(controlPlane.url), maxReplyBytes: 1_000_000 });
  enrolled = await identityOf(record);
  channel = createControlChannel({ identity: enrolled, http, clock: { now: Date.now }, link, timeoutMs: 5_000 });
}

function poll(heldVersion: number | null = null): ReturnType<ControlChannel['snapshot']> {
  return channel.snapshot({ waitSeconds: 0, heldVersion, signal: new AbortController().signal });
}

describe('the snapshot call', () => {
  it('returns the bindings and credential versions that the control plane signed', async () => {
    plane.hostBindings = [BINDING];
    plane.secrets = [{ ...DEMO, value: 'v', version: '7' }];
    const reply = await poll();
    expect(reply).toMatchObject({
      ok: true,
      value: {
        kind: 'snapshot',
        snapshot: {
          version: 1,
          hostBindings: [{ host: 'api.example.test', credential: DEMO, injection: { scheme: 'bearer' } }],
          credentials: [{ ...DEMO, version: '7' }],
        },
      },
    });
    expect(link.state).toBe('up');
  });

  it('returns a confirmation for the version that the sidecar holds', async () => {
    expect(await poll(1)).toMatchObject({ ok: true, value: { kind: 'unchanged', confirmation: { version: 1 } } });
  });

  it('reads its own output back, and rejects it if one character was changed', async () => {
    const reply = await poll();
    const jws = reply.ok ? reply.value.jws : '';
    expect(await channel.verifyStored(jws)).toMatchObject({ ok: true, value: { version: 1 } });
    const [header, payload = '', signature] = jws.split('.');
    const other = `${payload.slice(0, -2)}${payload.endsWith('A') ? 'B' : 'A'}${payload.slice(-1)}`;
    expect(await channel.verifyStored(`${header}.${other}.${signature}`)).toMatchObject({ ok: false });
  });

  it.each<[string, (payload: Record<string, unknown>) => void]>([
    ['for another sidecar', (payload) => (payload['sidecar_id'] = 'sdc_00000000000000000000000000')],
    ['that answers another call', (payload) => (payload['nonce'] = 'n'.repeat(22))],
    ['without a version', (payload) => delete payload['version']],
    [
      'with a binding this version does not know',
      (payload) => (payload['host_bindings'] = [{ ...BINDING, scheme: 'x' }]),
    ],
  ])('refuses a properly signed snapshot %s', async (_what, change) => {
    plane.tamperPayload = change;
    expect(await poll()).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
    expect(link.state).toBe('down');
  });

  it('refuses a snapshot that another control plane signed', async () => {
    const impostor = new FakeControlPlane();
    await impostor.start();
    const keys = await generateSidecarKeys();
    const mine = await plane.adopt({ signing_key: keys.signing, receiving_key: keys.receiving });
    const theirs = await impostor.adopt({ signing_key: keys.signing, receiving_key: keys.receiving });
    const identity = await identityOf({ ...theirs, control_plane_key: mine.control_plane_key });
    const client = createHttpClient({ baseUrl: new URL(impostor.url), maxReplyBytes: 1_000_000 });
    const fooled = createControlChannel({ identity, http: client, clock: { now: Date.now }, link });
    const reply = await fooled.snapshot({ waitSeconds: 0, heldVersion: null, signal: new AbortController().signal });
    expect(reply).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
    client.close();
    await impostor.stop();
  });

  it('refuses a 304 without a proof, or with the proof of an earlier call', async () => {
    const replies: string[] = [];
    plane.tamperReply = (_call, reply) => {
      replies.push(reply.headers?.[SNAPSHOT_PROOF_HEADER] ?? '');
      return replies.length === 1 ? null : { ...reply, headers: { [SNAPSHOT_PROOF_HEADER]: replies[0] ?? '' } };
    };
    expect(await poll(1)).toMatchObject({ ok: true });
    expect(await poll(1)).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
    plane.tamperReply = (_call, reply) => ({ ...reply, headers: {} });
    expect(await poll(1)).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
  });

  it("refuses a snapshot in place of its confirmation, even with all the confirmation's claims", async () => {
    plane.tamperReply = (_call, reply) => ({ status: 304, headers: { [SNAPSHOT_PROOF_HEADER]: reply.body ?? '' } });
    expect(await poll()).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
  });

  it('refuses a credential reply in place of a snapshot', async () => {
    let credentials = '';
    plane.tamperReply = (call, reply) => {
      if (call.target.endsWith('credentials')) credentials = reply.body ?? '';
      return call.target.includes('snapshot') ? { status: 200, body: credentials } : null;
    };
    await channel.credentials([DEMO]);
    expect(await poll()).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
  });

  it('ends when its signal is aborted, and does not count as a link failure', async () => {
    await poll();
    const giveUp = new AbortController();
    const polling = channel.snapshot({ waitSeconds: 25, heldVersion: 1, signal: giveUp.signal });
    giveUp.abort();
    expect(await polling).toMatchObject({ ok: false, error: { reason: 'aborted' } });
    expect(link.state).toBe('up');
  });
});

describe('the credentials call', () => {
  it('opens values that are sealed to this sidecar, and its result prints none', async () => {
    plane.secrets = [{ ...DEMO, value: 'tok-4711-secret', version: '3' }];
    const reply = await channel.credentials([DEMO, { owner: 'enterprise', path: 'none' }]);
    expect(reply).toMatchObject({
      ok: true,
      value: {
        released: [{ ref: DEMO, credential: { version: '3' } }],
        missing: [{ owner: 'enterprise', path: 'none' }],
      },
    });
    expect(reply.ok && reply.value.released[0]?.credential.secret.reveal()).toBe('tok-4711-secret');
    expect(inspect(reply, { depth: 9 }) + JSON.stringify(reply)).not.toContain('4711');
    expect(plane.calls.map((call) => call.body).join()).not.toContain('4711');
  });

  it.each<[string, (payload: Record<string, unknown>) => void]>([
    ['that answers another request', (payload) => (payload['request_id'] = 'r'.repeat(22))],
    ['for another sidecar', (payload) => (payload['sidecar_id'] = 'sdc_00000000000000000000000000')],
    ['that has expired', (payload) => (payload['expires_at'] = '2020-01-01T00:00:00.000Z')],
    [
      'sealed to another sidecar',
      (payload) => (payload['credentials'] = [{ ...DEMO, version: '1', sealed: 'a.b.c.d.e' }]),
    ],
  ])('refuses a properly signed reply %s', async (_what, change) => {
    plane.secrets = [{ ...DEMO, value: 'v', version: '1' }];
    plane.tamperPayload = change;
    expect(await channel.credentials([DEMO])).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
  });
});

describe('a call for a narrowed value', () => {
  it('names the narrowing, and takes no value that does not say it was narrowed', async () => {
    plane.secrets = [{ ...DEMO, value: 'the-wide-value', version: '7' }];
    const narrowing = { repositories: ['website'] };
    const reply = await channel.credentials([{ ...DEMO, narrowing }]);
    expect(reply).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
    expect(inspect(reply, { depth: 9 })).not.toContain('the-wide-value');
    const sent = plane.calls.find(({ target }) => target.endsWith('/credentials'));
    expect(JSON.parse(sent?.body ?? '')).toMatchObject({ credentials: [{ ...DEMO, narrowing }] });
  });

  it('that an earlier control plane refuses is no failure of the link', async () => {
    await channel.credentials([DEMO]);
    plane.tamperReply = () => errorReply(400, 'invalid_input');
    const narrowed = await channel.credentials([{ ...DEMO, narrowing: { repositories: ['website'] } }]);
    expect([narrowed.ok, link.state]).toEqual([false, 'up']);
    await channel.credentials([DEMO]);
    expect(link.state).toBe('down');
  });
});

describe('connectors over the channel', () => {
  const RECORD = {
    id: 'con_00000000000000000000000001',
    owner: 'personal',
    content_hash: '0'.repeat(64),
    spec: {
      schema_version: 1,
      connector: { fqn: 'acme/items', version: '1.0.0', title: 'Items' },
      hosts: ['api.example.test'],
      credential: { kind: 'oauth2' },
      operations: [{ name: 'list', method: 'GET', path: '/items', effect: 'read' }],
    },
    credential: { owner: 'personal', path: 'connectors/acme/items', state: 'ready' },
  };
  const REF = { owner: 'personal', path: 'connectors/acme/items' } as const;

  it('asks for the inactive connectors, which an earlier version does not know', async () => {
    plane.inactiveConnectors = [RECORD];
    expect(await poll()).toMatchObject({
      ok: true,
      value: { snapshot: { connectors: { ok: true, value: [{ id: RECORD.id, inactive: true }] } } },
    });
  });

  it('come with the snapshot; an unreadable one disables all of them', async () => {
    plane.connectors = [RECORD];
    expect(await poll()).toMatchObject({
      value: { snapshot: { connectors: { ok: true, value: [{ id: RECORD.id, spec: { fqn: 'acme/items' } }] } } },
    });
    plane.connectors = [RECORD, { ...RECORD, spec: { ...RECORD.spec, hosts: ['*'] } }];
    expect(await poll()).toMatchObject({ ok: true, value: { snapshot: { connectors: { ok: false } } } });
  });

  it("an access token has an end, by this machine's clock and never later than stated", async () => {
    const end = Date.now() + 300_000;
    plane.secrets = [{ ...REF, value: 'token', version: '1', expires_at: new Date(end).toISOString() }];
    const inStep = await channel.credentials([REF]);
    const expiresAt = inStep.ok ? inStep.value.released[0]?.credential.expiresAt : undefined;
    expect(expiresAt).toBeLessThanOrEqual(end);
    expect(expiresAt).toBeGreaterThan(end - 20_000);
    plane.tamperPayload = (payload) => {
      payload['expires_at'] = new Date(Date.now() + 90_000).toISOString();
    };
    const ahead = await channel.credentials([REF]);
    expect(ahead.ok && (ahead.value.released[0]?.credential.expiresAt ?? end)).toBeLessThan(end - 20_000);
  });

  it('a credential to authorise again has the control plane’s message', async () => {
    const message = 'Authorise it at https://control.example.test/connectors';
    plane.unavailable = [{ ...REF, reason: 'reauthorisation_required', message }];
    expect(await channel.credentials([REF])).toMatchObject({
      value: { unavailable: [{ ref: REF, refusal: { reason: 'reauthorisation_required', message } }] },
    });
  });

  it('a slow provider gets more time than the control plane, and does not count as a link failure', async () => {
    const waited: number[] = [];
    const silent: HttpClient = {
      async call({ timeoutMs }) {
        waited.push(timeoutMs);
        return err({ reason: 'timeout', message: 'no reply' });
      },
      close: () => undefined,
    };
    const slow = createControlChannel({ identity: enrolled, http: silent, clock: { now: Date.now }, link });
    expect(await slow.credentials([REF])).toMatchObject({ error: { reason: 'timeout' } });
    expect(await slow.credentials([{ ...DEMO, minted: true }])).toMatchObject({ error: { reason: 'timeout' } });
    const unsealed = { path: 'user/demo', host: 'api.example.test', reason: 'it pins its certificate' };
    expect(await slow.fetchUnsealed(unsealed)).toMatchObject({ error: { reason: 'timeout' } });
    expect(link.state).toBe('connecting');
    expect(await slow.credentials([DEMO])).toMatchObject({ error: { reason: 'timeout' } });
    expect(link.state).toBe('down');
    expect(waited).toEqual([90_000, 90_000, 90_000, 10_000]);
  });

  const ASKED = {
    requestId: 'request-00000000',
    subject: { connectorId: RECORD.id, operation: 'list' },
    fingerprint: 'a'.repeat(64),
    scope: 'b'.repeat(64),
    summary: 'List items',
    sessionId: null,
    sessionName: 'claude',
    folder: '/home/ann/shop',
  };

  it('a session that asks for too many approvals does not count as a link failure', async () => {
    await poll();
    plane.tamperReply = () => errorReply(429, 'too_many_approvals');
    expect(await channel.requestApproval(ASKED)).toMatchObject({ error: { code: 'too_many_approvals' } });
    expect(link.state).toBe('up');
  });

  it('a control plane of an earlier version is asked without what it does not know', async () => {
    plane.tamperReply = ({ body }) =>
      body.includes('session_name') || body.includes('folder') ? errorReply(400, 'invalid_input') : null;
    expect(await channel.requestApproval(ASKED)).toMatchObject({ ok: true, value: { state: 'pending' } });
    plane.tamperReply = () => errorReply(400, 'invalid_input');
    expect(await channel.requestApproval(ASKED)).toMatchObject({ ok: false, error: { code: 'invalid_input' } });
  });

  it('an approval is requested, polled for, and given to one request only', async () => {
    const first = await channel.requestApproval(ASKED);
    expect(first).toMatchObject({ ok: true, value: { state: 'pending' } });
    const approvalId = first.ok ? first.value.approvalId : '';
    const wait = { approvalId, waitSeconds: 25, signal: new AbortController().signal };
    const waiting = channel.awaitApproval({ ...wait, requestId: ASKED.requestId });
    await expect.poll(() => plane.calls.length).toBe(2);
    plane.approvals.decide(approvalId, 'approved');
    expect(await waiting).toEqual({ ok: true, value: { approvalId, state: 'approved' } });
    const other = await channel.awaitApproval({ ...wait, requestId: 'request-11111111' });
    expect(other).toMatchObject({ value: { state: 'used' } });
  });

  it.each(['request_id', 'nonce', 'sidecar_id', 'approval_id'])(
    'an approval is accepted only for its own request: not with another %s',
    async (field) => {
      const first = await channel.requestApproval(ASKED);
      const approvalId = first.ok ? first.value.approvalId : '';
      plane.approvals.decide(approvalId, 'approved');
      const others = { request_id: 'request-99999999', nonce: 'n'.repeat(22) };
      const ids = { sidecar_id: `sdc_${'0'.repeat(26)}`, approval_id: `apr_${'0'.repeat(26)}` };
      plane.tamperPayload = (payload) => {
        payload[field] = { ...others, ...ids }[field];
      };
      const wait = { approvalId, requestId: ASKED.requestId, waitSeconds: 0, signal: new AbortController().signal };
      expect(await channel.awaitApproval(wait)).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
    },
  );
});

describe('the events call', () => {
  it('tells which events were accepted and which can never be', async () => {
    plane.rejectEvent = (event) => (JSON.stringify(event).includes('"b"') ? 'bad' : null);
    const reply = await channel.sendEvents(['{"id":"a"}', '{"id":"b"}']);
    expect(reply).toMatchObject({ ok: true, value: { accepted: ['a'], rejected: [{ index: 1, message: 'bad' }] } });
  });

  it.each(['', 'not json', '{}', '{"accepted":["a"],"rejected":[]}', 'a.b.c'])(
    'treats the unsigned reply %j as a failure',
    async (body) => {
      plane.tamperReply = () => ({ status: 200, body });
      expect(await channel.sendEvents(['{"id":"a"}'])).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
    },
  );
});

const sendOne = () => channel.sendEvents(['{"id":"a"}']);

describe('a reply to events that the control plane did not send', () => {
  it.each<[string, (payload: Record<string, unknown>) => void]>([
    ['for another sidecar', (payload) => (payload['sidecar_id'] = 'sdc_00000000000000000000000000')],
    ['to another call', (payload) => (payload['nonce'] = 'n'.repeat(22))],
    ['without the accepted ids', (payload) => delete payload['accepted']],
  ])('is rejected, even if properly signed: one %s', async (_what, change) => {
    plane.tamperPayload = change;
    expect(await sendOne()).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
    expect(link.state).toBe('down');
  });

  it('is rejected if it is the genuine reply to an earlier call', async () => {
    const replies: string[] = [];
    plane.tamperReply = (_call, reply) => {
      replies.push(reply.body ?? '');
      return { ...reply, body: replies[0] ?? '' };
    };
    expect(await sendOne()).toMatchObject({ ok: true });
    expect(await sendOne()).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
  });

  it('is rejected if signed but with another id put in', async () => {
    plane.tamperReply = (_call, reply) => {
      const [header, payload = '', signature] = (reply.body ?? '').split('.');
      const said = Buffer.from(payload, 'base64url').toString().replace('"a"', '"b"');
      return { ...reply, body: `${header}.${Buffer.from(said).toString('base64url')}.${signature}` };
    };
    expect(await sendOne()).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
  });

  it('is rejected if the control plane signed it for a credential call', async () => {
    let credentials = '';
    plane.tamperReply = (call, reply) => {
      if (call.target.endsWith('credentials')) credentials = reply.body ?? '';
      return { ...reply, body: credentials };
    };
    await channel.credentials([DEMO]);
    expect(await sendOne()).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
  });
});

describe('the calls of a login', () => {
  const ID = 'plg_00000000000000000000000001';
  const OTHERS = {
    sidecar_id: 'sdc_00000000000000000000000000',
    nonce: 'n'.repeat(22),
    login_id: 'plg_00000000000000000000000000',
  };
  const TOKENS = {
    accessToken: new Secret('access-token-4711'),
    refreshToken: new Secret('refresh-token-4711'),
    expiresIn: 3600,
    account: { who: 'dev@example.test', plan: null, may_make_keys: false },
  };
  let privateKey: CryptoKey;

  beforeEach(async () => {
    const pair = await generateKeyPair('ECDH-ES', { crv: 'P-256', extractable: true });
    const { kty, crv, x, y } = await exportJWK(pair.publicKey);
    privateKey = pair.privateKey;
    plane.openLogin = {
      id: ID,
      program: 'claude',
      token_url: 'https://auth.example.test/token',
      client_id: 'client',
      grants: ['authorization_code'],
      key: { kty, crv, x, y },
      expires_at: '2026-01-02T03:34:05.678Z',
    };
  });

  const fetchOpen = async () => {
    const open = await channel.fetchLogin(ID);
    if (!open.ok) throw new Error(open.error.message);
    return open.value;
  };
  it('give the facts that the control plane signed', async () => {
    expect(await fetchOpen()).toEqual({
      id: ID,
      program: 'claude',
      tokenUrl: 'https://auth.example.test/token',
      clientId: 'client',
      grants: ['authorization_code'],
      key: plane.openLogin?.['key'],
      expiresAt: Date.parse('2026-01-02T03:34:05.678Z'),
    });
  });

  it.each(['sidecar_id', 'nonce'] as const)('refuse facts that were signed with another %s', async (field) => {
    plane.tamperPayload = (payload) => (payload[field] = OTHERS[field]);
    expect(await channel.fetchLogin(ID)).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
  });

  it('refuse the facts of another login', async () => {
    plane.tamperPayload = (payload) => (payload['login'] = { ...plane.openLogin, id: OTHERS.login_id });
    expect(await channel.fetchLogin(ID)).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
  });

  it('refuse facts without a signature, and with a changed one', async () => {
    plane.tamperReply = (_call, reply) => ({ ...reply, body: JSON.stringify({ login: plane.openLogin }) });
    expect(await channel.fetchLogin(ID)).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
    plane.tamperReply = (_call, reply) => {
      const [header, payload = '', signature] = (reply.body ?? '').split('.');
      const facts = Buffer.from(payload, 'base64url').toString().replace('auth.example', 'evil.example');
      return { ...reply, body: `${header}.${Buffer.from(facts).toString('base64url')}.${signature}` };
    };
    expect(await channel.fetchLogin(ID)).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
  });

  it('send the tokens so that only the key of the login opens them, for this login and by this sidecar', async () => {
    expect(await channel.holdLogin(await fetchOpen(), TOKENS)).toEqual({ ok: true, value: undefined });
    const [sealed = ''] = plane.sentLogins;
    expect(plane.calls.map(({ body }) => body).join()).not.toContain('4711');
    const { plaintext, protectedHeader } = await compactDecrypt(sealed, privateKey);
    expect(protectedHeader).toMatchObject({
      alg: 'ECDH-ES',
      enc: 'A256GCM',
      typ: LOGIN_TOKENS_TYP,
      login: ID,
      sidecar: enrolled.sidecarId,
    });
    expect(loginTokens.parse(JSON.parse(new TextDecoder().decode(plaintext)))).toEqual({
      access_token: 'access-token-4711',
      refresh_token: 'refresh-token-4711',
      expires_in: 3600,
      account: TOKENS.account,
    });
    const other = await generateKeyPair('ECDH-ES', { crv: 'P-256' });
    await expect(compactDecrypt(sealed, other.privateKey)).rejects.toThrow('decryption operation failed');
    const [, ...rest] = sealed.split('.');
    const header = { ...protectedHeader, sidecar: OTHERS.sidecar_id };
    const forged = [Buffer.from(JSON.stringify(header)).toString('base64url'), ...rest].join('.');
    await expect(compactDecrypt(forged, privateKey)).rejects.toThrow('decryption operation failed');
  });

  it('send no refresh token if there is none', async () => {
    await channel.holdLogin(await fetchOpen(), { ...TOKENS, refreshToken: null, expiresIn: null });
    const { plaintext } = await compactDecrypt(plane.sentLogins[0] ?? '', privateKey);
    expect(JSON.parse(new TextDecoder().decode(plaintext))).toMatchObject({ refresh_token: null, expires_in: null });
  });

  it.each(['sidecar_id', 'nonce', 'login_id'] as const)(
    'take tokens as stored only by a word for this call: not with another %s',
    async (field) => {
      const open = await fetchOpen();
      plane.tamperPayload = (payload) => (payload[field] = OTHERS[field]);
      expect(await channel.holdLogin(open, TOKENS)).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
    },
  );

  it.each(['', '{}', 'a.b.c'])('do not take tokens as stored by the unsigned reply %j', async (body) => {
    const open = await fetchOpen();
    plane.tamperReply = () => ({ status: 200, body });
    expect(await channel.holdLogin(open, TOKENS)).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
  });
});

describe('a call that fails', () => {
  it('reports a clock difference with the time of the control plane', async () => {
    plane.tamperReply = () => errorReply(401, 'clock_skew', { server_time: '2030-01-01T00:00:00.000Z' });
    const reply = await poll();
    expect(reply).toMatchObject({ ok: false, error: { reason: 'clock_skew', serverTime: '2030-01-01T00:00:00.000Z' } });
    expect(!reply.ok && reply.error.message).toContain('2030-01-01');
  });

  it('reports a revocation only if the control plane signed it for this call', async () => {
    plane.revoked = true;
    expect(await poll()).toMatchObject({ ok: false, error: { reason: 'revoked' } });
    expect(link.state).toBe('revoked');

    plane.revoked = false;
    expect(await poll()).toMatchObject({ ok: true });
    plane.tamperReply = () => errorReply(401, 'sidecar_revoked', { proof: 'a.b.c' });
    expect(await poll()).toMatchObject({ ok: false, error: { reason: 'unavailable' } });
    expect(link.state).toBe('down');
  });

  it.each([
    ['503 database_unavailable', 'unavailable', errorReply(503, 'database_unavailable')],
    ['401 replayed_call', 'unavailable', errorReply(401, 'replayed_call')],
    ['401 invalid_sidecar_call', 'refused', errorReply(401, 'invalid_sidecar_call')],
    ['400 invalid_input', 'refused', errorReply(400, 'invalid_input')],
    ["a gateway's page", 'unavailable', { status: 502, body: '<html>bad gateway</html>' }],
    ['a redirect', 'unavailable', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }],
    ['an endless reply', 'invalid_reply', { status: 200, body: 'x'.repeat(1_000_001) }],
  ])('takes %s as %s', async (_what, reason, answer) => {
    plane.tamperReply = () => answer;
    expect(await poll()).toMatchObject({ ok: false, error: { reason } });
  });

  it('is unreachable when nobody listens, and up again when the same port answers', async () => {
    await poll();
    await plane.stop();
    expect(await poll()).toMatchObject({ ok: false, error: { reason: 'unreachable' } });
    expect(link.state).toBe('down');
    let woken = 0;
    link.onUp(() => (woken += 1));
    await plane.start();
    expect(await poll()).toMatchObject({ ok: true });
    expect(woken).toBe(1);
  });

  it('is unreachable when the connection is cut before a reply', async () => {
    plane.tamperReply = () => ({ status: CUT });
    expect(await poll()).toMatchObject({ ok: false, error: { reason: 'unreachable' } });
  });

  it('times out when no reply comes', async () => {
    plane.tamperReply = () => ({ status: SILENT });
    const call = {
      method: 'GET',
      target: '/v1/sidecar/snapshot?wait=0',
      headers: {},
      body: '',
      timeoutMs: 20,
    } as const;
    expect(await http.call(call)).toMatchObject({ ok: false, error: { reason: 'timeout' } });
  });

  it('has its own one-time id', async () => {
    await channel.credentials([DEMO]);
    await channel.sendEvents(['{"id":"a"}']);
    const nonces = plane.calls.map((call) => call.nonce);
    expect(new Set(nonces).size).toBe(2);
  });
});

describe('MCP servers over the channel', () => {
  const RECORD = {
    id: 'mcp_00000000000000000000000001',
    owner: 'personal',
    name: 'files',
    description: '',
    mode: 'local',
    version: null,
    registry_id: null,
    command: ['files'],
    env: {},
    url: null,
    transport: null,
    headers: {},
    tools: { allow: null, deny: [], approval: [] },
    enabled: true,
    isolation: 'process',
    revision: 1,
    authorization: null,
  };

  it('come with the snapshot; an unreadable one is left out and named', async () => {
    const other = { ...RECORD, id: 'mcp_00000000000000000000000002', sudo: true };
    plane.mcpServers = [other, RECORD];
    expect(await poll()).toMatchObject({
      value: {
        snapshot: {
          mcpServers: [{ server: { id: RECORD.id, command: ['files'] }, authorization: null }],
          unreadableMcpServers: [{ index: 0, id: other.id }],
        },
      },
    });
  });

  it('sends the health of the servers, and a refusal is an error', async () => {
    const servers = [
      { id: RECORD.id, state: 'running' as const, last_error: null, checked_at: '2026-01-01T00:00:00.000Z' },
    ];
    expect(await channel.reportMcpHealth({ servers })).toEqual({ ok: true, value: undefined });
    expect(plane.healthReports).toEqual([{ servers }]);
    plane.tamperReply = () => errorReply(503, 'unavailable');
    expect(await channel.reportMcpHealth({ servers })).toMatchObject({ error: { reason: 'unavailable' } });
  });

  it('reports servers without refused hosts to a control plane that does not know the field', async () => {
    const server = {
      id: RECORD.id,
      state: 'running' as const,
      last_error: null,
      checked_at: '2026-01-01T00:00:00.000Z',
    };
    const servers = [{ ...server, refused_hosts: ['a.test'] }];
    expect(await channel.reportMcpHealth({ servers })).toMatchObject({ ok: true });
    const replies = [errorReply(400, 'invalid_input')];
    plane.tamperReply = () => replies.pop() ?? null;
    expect(await channel.reportMcpHealth({ servers })).toMatchObject({ ok: true });
    plane.tamperReply = () => errorReply(400, 'invalid_input');
    expect(await channel.reportMcpHealth({ servers: [server] })).toMatchObject({ error: { reason: 'refused' } });
    expect(plane.healthReports.slice(0, 3)).toEqual([{ servers }, { servers }, { servers: [server] }]);
  });
});
