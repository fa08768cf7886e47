import { createPrivateKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import forge from 'node-forge';
import { generate } from 'selfsigned';
import { type Answer, runCli, type RunOptions, type RunResult, TestHome } from '../testing/run_cli.ts';
import { certificatePlace } from './certificate_place.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const HOST = 'mtls.example.com';
const END = '2026-03-01T00:00:00.000Z';
const TIME = '2026-01-01T11:59:00.000Z';
const REFERENCE = `vault://user/client-certificates/${HOST}`;
const RECORD = { id: 'crt_01m7yjc1391a5krmyacsgq908t', host: HOST, credential_ref: REFERENCE, created_at: TIME };

let own: Awaited<ReturnType<typeof make>>;
beforeAll(async () => {
  own = await make('2025-01-01T00:00:00.000Z', END);
});

const make = (from: string, until: string) =>
  generate([{ name: 'commonName', value: 'own' }], {
    algorithm: 'sha256',
    notBeforeDate: new Date(from),
    notAfterDate: new Date(until),
  });

const page = (items: readonly object[]) => ({ status: 200, body: { items, next_cursor: null } });

/** A control plane with these records, whose secrets are those that it is given. */
function control(records: readonly object[], stored: readonly object[] = []): Answer {
  const secrets = [...stored];
  return ({ method, url, body }) => {
    const fields = typeof body === 'object' ? body : {};
    if (url.pathname === '/v1/secrets' && method === 'GET') return page(secrets);
    if (url.pathname === '/v1/secrets') {
      const secret = secretAt(String(Reflect.get(fields ?? {}, 'path')), Reflect.get(fields ?? {}, 'expires_at'));
      secrets.push(secret);
      return { status: 201, body: secret };
    }
    if (method === 'GET') return page(records);
    return method === 'DELETE' ? { status: 204 } : { status: 201, body: { ...RECORD, ...fields } };
  };
}

function secretAt(path: string, end?: unknown): object {
  const fixed = { id: 'sec_01m7yjbz4dz98vffmftfxp52e5', owner: 'personal', description: null, version: 1 };
  const times = { created_at: TIME, updated_at: TIME, ...(typeof end === 'string' && { expires_at: end }) };
  return { ...fixed, ...times, path, ref: `vault://${path}` };
}

const writes = ({ calls }: RunResult) => calls.filter(({ method }) => method !== 'GET');
const names = (run: RunResult): string[] => writes(run).map(({ method, url }) => `${method} ${url.pathname}`);
const cert = (args: readonly string[], options: RunOptions = {}) =>
  runCli(home, ['cert', ...args], { answer: control([]), ...options });

function files(made = own): string[] {
  home.write('own.pem', made.cert);
  home.write('own.key', made.private);
  return ['--cert', 'own.pem', '--key', 'own.key'];
}

function pkcs12(passphrase: string): string[] {
  const key = forge.pki.privateKeyFromPem(own.private);
  const asn1 = forge.pkcs12.toPkcs12Asn1(key, [forge.pki.certificateFromPem(own.cert)], passphrase);
  writeFileSync(join(home.path, 'own.p12'), forge.asn1.toDer(asn1).getBytes(), 'latin1');
  return ['--pkcs12', 'own.p12'];
}

describe('svc cert add', () => {
  test('stores both with their end, and presents them to the host', async () => {
    const run = await cert(['add', HOST, ...files(), '--json']);
    expect(run).toMatchObject({ code: 0 });
    expect(writes(run).map(({ body }) => body)).toEqual([
      expect.objectContaining({ path: `user/client-certificates/${HOST}`, expires_at: END }),
      { host: HOST, credential_ref: REFERENCE },
    ]);
    expect(JSON.parse(run.stdout)).toMatchObject({ host: HOST, credential_ref: REFERENCE, expires_at: END });
  });

  test('of a renewed certificate replaces only the value, and of another limit the record in one call', async () => {
    const answer = control([{ ...RECORD, effect: 'read' }]);
    expect(names(await cert(['add', HOST, ...files()], { answer }))).toEqual(['POST /v1/secrets']);
    const changed = await cert(['add', HOST, '--http2'], { answer });
    expect(writes(changed).map(({ body }) => body)).toEqual([
      { host: HOST, credential_ref: REFERENCE, effect: 'read', http2: true },
    ]);
  });

  test('takes a stored secret by its path or reference, and warns if it is not there', async () => {
    for (const given of ['user/shared', 'vault://user/shared']) {
      const run = await cert(['add', HOST, '--credential', given]);
      expect(writes(run).map(({ body }) => body)).toEqual([{ host: HOST, credential_ref: 'vault://user/shared' }]);
      expect(run.stderr).toContain('vault://user/shared is not stored yet: svc cert add mtls.example.com --cert FILE');
    }
    const answer = control([], [secretAt('user/shared')]);
    expect((await cert(['add', HOST, '--credential', 'user/shared'], { answer })).stderr).not.toContain('not stored');
    const wrong = await cert(['add', HOST, '--credential', 'what ever']);
    expect(wrong).toMatchObject({ code: 2, calls: [] });
    expect(wrong.stderr).toContain('--credential: the vault path');
  });

  test('asks for the passphrase of a PKCS#12 file only if it has one', async () => {
    expect((await cert(['add', HOST, ...pkcs12('')])).code).toBe(0);
    expect((await cert(['add', HOST, ...pkcs12('open'), '--stdin'], { stdin: 'open' })).code).toBe(0);
    const wrong = await cert(['add', HOST, ...pkcs12('open'), '--stdin'], { stdin: 'other' });
    expect(wrong.stderr).toContain('own.p12 cannot be opened with this passphrase: nothing was stored');
    const unasked = await cert(['add', HOST, ...pkcs12('open')]);
    expect(unasked).toMatchObject({ code: 2 });
    expect(unasked.stderr).toContain('own.p12 has a passphrase');
    expect(unasked.stderr).toContain('--stdin');
  });

  test('takes a key that is encrypted in the traditional form', async () => {
    const form = { type: 'pkcs1', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'open' } as const;
    home.write('sealed.key', createPrivateKey(own.private).export(form).toString());
    files();
    const run = await cert(['add', HOST, '--cert', 'own.pem', '--key', 'sealed.key', '--stdin'], { stdin: 'open' });
    expect([run.code, run.stderr]).toEqual([0, expect.not.stringContaining('private key')]);
  });

  test.each([
    [['--cert', 'own.pem'], 'own.pem has no PEM private key', '--key FILE'],
    [['--cert', 'own.key'], 'own.key has no PEM certificate', '--pkcs12 FILE'],
    [['--key', 'own.key'], '--key was given without --cert', 'give the certificate'],
    [['--cert', 'own.pem', '--pkcs12', 'own.p12'], 'either --cert and --key, --pkcs12 or --credential', 'give'],
    [['--cert', 'none.pem'], 'none.pem cannot be read', 'it does not exist'],
    [[], 'no certificate was given', '--cert FILE --key FILE'],
  ])('with %j stores nothing, and says what to give', async (args, problem, fix) => {
    files();
    const run = await cert(['add', HOST, ...args]);
    expect([run.code, names(run)]).toEqual([2, []]);
    expect(run.stderr).toContain(problem);
    expect(run.stderr).toContain(fix);
  });

  test('refuses a certificate that has expired, and warns of one that is not valid yet', async () => {
    for (const [from, until, code, text] of [
      ['2024-01-01T00:00:00.000Z', '2025-12-31T00:00:00.000Z', 2, 'expired on 2025-12-31'],
      ['2026-02-01T00:00:00.000Z', '2027-12-31T00:00:00.000Z', 0, 'not valid before 2026-02-01'],
    ] as const) {
      const run = await cert(['add', HOST, ...files(await make(from, until))]);
      expect([run.code, run.stderr]).toEqual([code, expect.stringContaining(text)]);
    }
  });

  test('says what else a port of its own needs', async () => {
    const run = await cert(['add', `${HOST}:8443`, '--credential', 'user/shared']);
    expect(run.stderr).toContain(`svc allow ${HOST}:8443`);
  });
});

test.each([
  ['box', 'user/client-certificates/box'],
  ['box:8443', 'user/client-certificates/box/8443'],
  ['box-8443', 'user/client-certificates/box-8443'],
  ['_box', 'user/client-certificates/other/x_box'],
  ['[2001:db8::1]', 'user/client-certificates/other/x-2001-db8--1-'],
  ['[::1]:8443', 'user/client-certificates/other/x---1-/8443'],
])('%s has a place of its own', (host, path) => {
  expect(certificatePlace(host)).toBe(path);
});

test('svc cert list says when each ends, as far as it is known', async () => {
  const hosts = ['a', 'b', 'c', 'd'].map((name) => ({
    ...RECORD,
    host: `${name}.test`,
    credential_ref: `vault://user/${name}`,
  }));
  const past = '2025-12-01T00:00:00.000Z';
  const answer = control(hosts, [secretAt('user/a', END), secretAt('user/b', past), secretAt('user/c')]);
  const run = await cert(['list'], { answer });
  expect(
    run.stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t').at(-1)),
  ).toEqual([END, `${past} (expired)`, 'unknown', 'not stored']);
  expect(JSON.parse((await cert(['list', '--json'], { answer })).stdout)).toMatchObject({
    items: [{ host: 'a.test', expires_at: END }, { host: 'b.test' }, { host: 'c.test' }, { host: 'd.test' }],
  });
});

test('svc cert rm names the hosts that still have the certificate, or how to delete it', async () => {
  const other = { ...RECORD, id: 'crt_01m7yjc1391a5krmyacsgq908v', host: 'other.example.com' };
  const shared = await cert(['rm', HOST], { answer: control([RECORD, other]) });
  expect(shared.stderr).toContain('still presented to other.example.com');
  const last = await cert(['rm', HOST], { answer: control([RECORD]) });
  expect(last.stderr).toContain(`svc secret rm user/client-certificates/${HOST}`);
});

test('a control plane of an earlier version is told from one without certificates', async () => {
  const error = { code: 'not_found', message: 'this path does not exist: /docs lists the API', request_id: 'req_1' };
  const run = await cert(['list'], { answer: () => ({ status: 404, body: { error } }) });
  expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('earlier version')]);
});
