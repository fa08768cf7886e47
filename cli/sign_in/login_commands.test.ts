import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, runCli, type SeenCall, TestHome } from '../testing/run_cli.ts';

const ORIGIN = 'https://control.example.test';
const ID = '00000000000000000000000000';
const NOW = '2026-01-01T12:00:00.000Z';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
  // No svc runs here.
  home.write('run.json', '{}');
});
afterEach(() => home.remove());

const tokens = (n: number) => ({
  access_token: `access-${n}`,
  token_type: 'Bearer',
  expires_in: 600,
  refresh_token: `svc_rt_${n}`,
});
const refusal = (status: number, code: string) => ({
  status,
  body: { error: { code, message: 'no', request_id: `req_${ID}` } },
});
const device = {
  device_code: 'secret-of-the-device',
  user_code: 'BCDF-GHJK',
  verification_uri: `${ORIGIN}/device`,
  expires_in: 600,
  interval: 5,
};
const me = {
  id: `usr_${ID}`,
  enterprise_id: `ent_${ID}`,
  email: 'ada@example.test',
  display_name: 'Ada',
  role: 'owner',
  policy_version: 0,
  created_at: NOW,
};
const enrolled = {
  sidecar_id: `sdc_${ID}`,
  control_plane_id: `cpl_${ID}`,
  control_plane_key: { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43) },
};

/** A control plane where the sign-in is approved at the third poll. */
function controlPlane(changes: Record<string, Answer> = {}): Answer {
  let polls = 0;
  const answers: Record<string, Answer> = {
    'POST /auth/device/code': () => ({ status: 200, body: device }),
    'POST /auth/device/token': () => {
      polls += 1;
      if (polls === 1) return refusal(400, 'authorization_pending');
      return polls === 2 ? refusal(400, 'slow_down') : { status: 200, body: tokens(1) };
    },
    'POST /auth/refresh': () => ({ status: 200, body: tokens(2) }),
    'POST /auth/revoke': () => ({ status: 204 }),
    'GET /v1/me': () => ({ status: 200, body: me }),
    'POST /v1/sidecars': () => ({ status: 201, body: enrolled }),
    'DELETE /v1/sidecars/sdc_00000000000000000000000000': () => ({ status: 204 }),
    ...changes,
  };
  return (call) => (answers[`${call.method} ${call.url.pathname}`] ?? (() => refusal(404, 'not_found')))(call);
}

const run = (argv: readonly string[], answer = controlPlane()) => runCli(home, argv, { answer });
const logIn = (answer = controlPlane()) => run(['login', '--control', ORIGIN, '--name', 'laptop'], answer);
const signInFile = () => join(home.path, 'sign_in.json');
const identityFile = () => join(home.path, 'sidecar', 'identity.json');
const names = (calls: readonly SeenCall[]) => calls.map(({ method, url }) => `${method} ${url.pathname}`);

/** A control plane that refuses some access tokens. */
const refusing = (isRefused: (authorization: string | null) => boolean) =>
  controlPlane({
    'POST /v1/secrets': ({ authorization }) =>
      isRefused(authorization) ? refusal(401, 'unauthenticated') : { status: 201, body: {} },
  });

function expireAccessToken(): void {
  const found: object = JSON.parse(readFileSync(signInFile(), 'utf8'));
  writeFileSync(signInFile(), JSON.stringify({ ...found, access_expires_at_ms: Date.parse(NOW) }), { mode: 0o600 });
}

describe('svc login', () => {
  test('shows the page and the code, waits, stores the tokens and enrols this machine', async () => {
    const { code, stdout, stderr, calls } = await logIn();
    expect([code, stdout]).toEqual([
      0,
      `signed in to ${ORIGIN} as ada@example.test; its sidecar is enrolled: start it with "svc sidecar"\n`,
    ]);
    expect(stderr).toContain(`${ORIGIN}/device`);
    expect(stderr).toContain('BCDF-GHJK');
    expect(stdout + stderr).not.toMatch(/access-1|svc_rt_1|secret-of-the-device/);
    expect(statSync(signInFile()).mode & 0o777).toBe(0o600);
    expect(statSync(identityFile()).mode & 0o777).toBe(0o600);
    expect(calls[0]?.body).toEqual({ client_name: 'svc on laptop' });
    // The local key never leaves this machine.
    expect(calls.filter(({ authorization }) => authorization?.includes('svc_local_'))).toEqual([]);
    expect(names(calls).filter((name) => name === 'POST /auth/device/token')).toHaveLength(3);
  });

  test('does not sign in if it was denied', async () => {
    const answer = controlPlane({ 'POST /auth/device/token': () => refusal(400, 'access_denied') });
    const { code, stderr } = await logIn(answer);
    expect([code, existsSync(signInFile())]).toEqual([1, false]);
    expect(stderr).toContain('access_denied');
  });

  test('does not reuse the state directory of another control plane', async () => {
    await logIn();
    const other = await run(['login', '--control', 'https://other.example.test']);
    expect([other.code, other.calls]).toEqual([1, []]);
    expect(other.stderr).toContain(ORIGIN);
  });

  test('does not reuse the sidecar of a local control plane', async () => {
    await logIn();
    const identity = readFileSync(identityFile(), 'utf8');
    await run(['logout']);
    home.write(join('sidecar', 'identity.json'), identity);
    const again = await logIn();
    expect([again.code, again.calls]).toEqual([1, []]);
    expect(again.stderr).toContain('--no-sidecar');
    expect((await run(['login', '--control', ORIGIN, '--no-sidecar'])).code).toBe(0);
  });

  test('requires https, except for this machine', async () => {
    const { code, calls } = await run(['login', '--control', 'http://control.example.test']);
    expect([code, calls]).toEqual([2, []]);
  });
});

describe('a command after svc login', () => {
  test('calls that control plane with the access token', async () => {
    await logIn();
    const { calls } = await run(['api', 'GET', '/v1/me']);
    expect(calls.map(({ url, authorization }) => [url.href, authorization])).toEqual([
      [`${ORIGIN}/v1/me`, 'Bearer access-1'],
    ]);
  });

  test('renews an expired token once, and stores the new one before using it', async () => {
    await logIn();
    expireAccessToken();
    const { calls } = await run(['api', 'GET', '/v1/me']);
    expect(names(calls)).toEqual(['POST /auth/refresh', 'GET /v1/me']);
    expect(calls[0]).toMatchObject({ body: { refresh_token: 'svc_rt_1' }, authorization: null });
    expect(calls[1]?.authorization).toBe('Bearer access-2');
    expect(readFileSync(signInFile(), 'utf8')).toContain('svc_rt_2');
    expect(names((await run(['api', 'GET', '/v1/me'])).calls)).toEqual(['GET /v1/me']);
    expect(existsSync(join(home.path, 'sign_in.lock'))).toBe(false);
  });

  test('renews a token once if it is refused early, such as after "svc keys rotate --at-once"', async () => {
    await logIn();
    const call = ['api', 'POST', '/v1/secrets', '--data', '{"path":"a"}'];
    const { code, calls } = await run(
      call,
      refusing((authorization) => authorization === 'Bearer access-1'),
    );
    expect([code, names(calls)]).toEqual([0, ['POST /v1/secrets', 'POST /auth/refresh', 'POST /v1/secrets']]);
    expect(calls.at(-1)).toMatchObject({ authorization: 'Bearer access-2', body: { path: 'a' } });
    const never = await run(
      call,
      refusing(() => true),
    );
    expect([never.code, names(never.calls).filter((name) => name === 'POST /v1/secrets').length]).toEqual([1, 2]);
  });

  test('says that the sign-in has ended if its token is refused for that', async () => {
    await logIn();
    const { code, stderr } = await run(
      ['api', 'GET', '/v1/me'],
      controlPlane({
        'GET /v1/me': () => refusal(401, 'unauthenticated'),
        'POST /auth/refresh': () => refusal(401, 'sign_in_over'),
      }),
    );
    expect([code, stderr]).toEqual([1, expect.stringContaining(`svc login --control ${ORIGIN}`)]);
  });

  test('waits for another svc that renews, but not for a dead one', async () => {
    await logIn();
    expireAccessToken();
    home.write('sign_in.lock', '999999999');
    expect((await run(['api', 'GET', '/v1/me'])).code).toBe(0);
    expireAccessToken();
    home.write('sign_in.lock', String(process.pid));
    const held = await run(['api', 'GET', '/v1/me']);
    expect([held.code, held.calls]).toEqual([1, []]);
  });

  test('says what to do when the sign-in has ended', async () => {
    await logIn();
    expireAccessToken();
    const answer = controlPlane({ 'POST /auth/refresh': () => refusal(401, 'sign_in_over') });
    const { code, stderr } = await run(['api', 'GET', '/v1/me'], answer);
    expect(code).toBe(1);
    expect(stderr).toContain(`svc login --control ${ORIGIN}`);
  });

  test('never sends the tokens to another control plane', async () => {
    await logIn();
    const other = await run(['--control', 'https://other.example.test', 'api', 'GET', '/v1/me']);
    expect([other.code, other.calls]).toEqual([1, []]);
    const local = await run(['--control', 'http://127.0.0.1:7420', 'api', 'GET', '/v1/me']);
    expect(local.calls.map(({ authorization }) => authorization)).toEqual([expect.stringContaining('svc_local_')]);
  });

  test('svc up refuses the state directory of a sign-in', async () => {
    await logIn();
    const { code, stderr } = await run(['up']);
    expect(code).toBe(1);
    expect(stderr).toContain('svc sidecar');
  });
});

describe('svc logout', () => {
  test('revokes the sidecar and the sign-in, then deletes both', async () => {
    await logIn();
    const { code, calls } = await run(['logout']);
    expect(code).toBe(0);
    expect(names(calls)).toEqual(['GET /v1/me', `DELETE /v1/sidecars/sdc_${ID}`, 'POST /auth/revoke']);
    expect(calls[2]?.body).toEqual({ refresh_token: 'svc_rt_1' });
    expect([existsSync(signInFile()), existsSync(identityFile())]).toEqual([false, false]);
    expect((await run(['logout'])).code).toBe(1);
  });

  test('keeps the sign-in if it could not be revoked', async () => {
    await logIn();
    const answer = controlPlane({ [`DELETE /v1/sidecars/sdc_${ID}`]: () => refusal(503, 'database_unavailable') });
    expect((await run(['logout'], answer)).code).toBe(1);
    expect([existsSync(signInFile()), existsSync(identityFile())]).toEqual([true, true]);
  });

  test('deletes a sign-in that was ended elsewhere, even if its token is still valid', async () => {
    await logIn();
    const answer = controlPlane({
      'GET /v1/me': () => refusal(401, 'unauthenticated'),
      'DELETE /v1/sidecars/sdc_00000000000000000000000000': () => refusal(401, 'unauthenticated'),
      'POST /auth/refresh': () => refusal(401, 'sign_in_over'),
    });
    const { code, stdout } = await run(['logout'], answer);
    expect([code, existsSync(signInFile()), existsSync(identityFile())]).toEqual([0, false, false]);
    expect(stdout).toContain('not be revoked there');
  });

  test('deletes an expired sign-in and says what could not be revoked', async () => {
    await logIn();
    expireAccessToken();
    const answer = controlPlane({ 'POST /auth/refresh': () => refusal(401, 'sign_in_over') });
    const { code, stdout } = await run(['logout'], answer);
    expect([code, existsSync(signInFile()), existsSync(identityFile())]).toEqual([0, false, false]);
    expect(stdout).toContain('not be revoked there');
  });

  test('keeps unsent events', async () => {
    await logIn();
    mkdirSync(join(home.path, 'sidecar', 'spool'));
    home.write(join('sidecar', 'spool', '1.jsonl'), '{}\n');
    await run(['logout']);
    expect(readdirSync(join(home.path, 'sidecar')).filter((name) => name.startsWith('spool.signed-out-'))).toHaveLength(
      1,
    );
  });
});

describe('svc token', () => {
  const created = {
    id: `tok_${ID}`,
    name: 'ci',
    scopes: ['secrets:read'],
    created_at: NOW,
    expires_at: '2026-02-01T12:00:00.000Z',
    last_used_at: null,
    revoked_at: null,
    token: 'svc_pat_text',
  };

  test('create prints only the token on stdout', async () => {
    await logIn();
    const { code, stdout, calls } = await run(
      ['token', 'create', 'ci', '--scope', 'secrets:read', '--days', '31'],
      () => ({ status: 201, body: created }),
    );
    expect([code, stdout]).toEqual([0, 'svc_pat_text\n']);
    expect(calls[0]?.body).toEqual({ name: 'ci', scopes: ['secrets:read'], expires_in_days: 31 });
  });

  test.each([
    ['without a scope', ['token', 'create', 'ci']],
    ['with an unknown scope', ['token', 'create', 'ci', '--scope', 'secrets:reed']],
    ['with days that are not a number', ['token', 'create', 'ci', '--scope', 'secrets:read', '--days', 'many']],
  ])('refuses create %s', async (_, argv) => {
    await logIn();
    const { code, calls } = await run(argv);
    expect([code, calls]).toEqual([2, []]);
  });

  test('list and revoke', async () => {
    await logIn();
    const { token: _, ...listed } = created;
    const list = await run(['token', 'list'], () => ({ status: 200, body: { items: [listed], next_cursor: null } }));
    expect(list.stdout).toContain(`tok_${ID}\tci\tsecrets:read\tuntil 2026-02-01\tnever`);
    const revoked = await run(['token', 'revoke', `tok_${ID}`], () => ({ status: 204 }));
    expect(names(revoked.calls)).toEqual([`DELETE /v1/tokens/tok_${ID}`]);
  });
});
