import { describe, expect, test } from 'vitest';
import { LIMIT_SETTINGS } from './limit_settings.ts';
import { DEFAULT_LIMITS } from './limits.ts';
import { parseControlUrl, parseSettings, SETTINGS } from './settings.ts';

function messages(env: Record<string, string>): string[] {
  const parsed = parseSettings(env);
  return parsed.ok ? [] : parsed.error.map((problem) => problem.message);
}

const key = 'q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k';

describe('parseSettings', () => {
  test('an empty environment gives the default limits and nothing else', () => {
    expect(parseSettings({})).toEqual({
      ok: true,
      value: {
        signIn: { allowedHosts: [], providerVariables: {}, mail: null },
        upstreamCaFiles: [],
        privateHosts: [],
        limits: DEFAULT_LIMITS,
      },
    });
  });

  test('reads every setting', () => {
    const parsed = parseSettings({
      SVC_HOME: '/var/lib/svc',
      SVC_CONTROL_URL: 'https://control.example.com/',
      SVC_VAULT_KEY: key,
      SVC_DATABASE_URL: 'libsql://db.example.com',
      SVC_DATABASE_TOKEN: 'abc.def',
      SVC_DATABASE_REPLICA_URL: 'https://replica.example.com',
      SVC_UPSTREAM_CA: '/a.pem:/b.pem',
      SVC_PRIVATE_HOSTS: 'IDP.corp.example, mail.corp.example:6515',
      SVC_SANDBOX_PROXY: 'off',
      SVC_SANDBOX_IMAGE: 'registry.example.com:5000/team/agent@sha256:0a',
      SVC_AGENT_BASE_IMAGE: 'team/node:24',
      SVC_MAX_HEAD_BYTES: '128KiB',
      SVC_IDLE_TUNNEL_SECONDS: '60',
    });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.error));
    expect(parsed.value).toMatchObject({
      home: '/var/lib/svc',
      controlUrl: 'https://control.example.com',
      databaseUrl: 'libsql://db.example.com',
      databaseReplicaUrl: 'https://replica.example.com',
      upstreamCaFiles: ['/a.pem', '/b.pem'],
      privateHosts: ['idp.corp.example', 'mail.corp.example:6515'],
      sandboxProxy: 'off',
      sandboxImage: 'registry.example.com:5000/team/agent@sha256:0a',
      agentBaseImage: 'team/node:24',
      limits: { ...DEFAULT_LIMITS, maxHeadBytes: 131_072, idleTunnelSeconds: 60 },
    });
    expect(parsed.value.vaultKey?.reveal()).toBe(key);
    expect(parsed.value.databaseToken?.reveal()).toBe('abc.def');
  });

  test.each([
    'idp',
    '*.corp.example',
    '10.0.0.7',
    'https://idp.corp.example',
    'idp.corp.example:0',
    'idp.corp.example:65536',
    'a.b:1:2',
    'a.b:',
    'a.b,,c.d',
  ])('a private host is a full name: %j is none', (text) => {
    const parsed = parseSettings({ SVC_PRIVATE_HOSTS: text });
    expect(parsed).toMatchObject({ ok: false, error: [{ name: 'SVC_PRIVATE_HOSTS' }] });
  });

  test('both programs read the limits of both APIs', () => {
    const readers = SETTINGS.filter(({ name }) => /^SVC_(?:MAX_API|MAX_RUN|RUN)_/.test(name)).map(
      ({ readBy }) => readBy,
    );
    expect(readers).toEqual(Array.from({ length: 4 }, () => ['control', 'sidecar']));
    const env = { SVC_MAX_API_BODY_BYTES: '2MiB', SVC_MAX_RUN_REPLY_BYTES: '8MiB', SVC_RUN_TIMEOUT_SECONDS: '90' };
    const parsed = parseSettings(env);
    expect(parsed.ok && parsed.value.limits).toEqual({
      ...DEFAULT_LIMITS,
      maxApiBodyBytes: 2 * 1024 * 1024,
      maxRunReplyBytes: 8 * 1024 * 1024,
      runTimeoutSeconds: 90,
    });
  });

  test.each([
    ['SVC_MAX_API_BODY_BYTES', '1KiB', 'from 512 KiB to 64 MiB'],
    ['SVC_MAX_RUN_REPLY_BYTES', '17MiB', 'from 1 KiB to 16 MiB'],
    ['SVC_MAX_RUN_REQUEST_BYTES', '-1', 'from 1 KiB to 64 MiB'],
    ['SVC_RUN_TIMEOUT_SECONDS', '30s', 'a whole number of seconds from 1 s to 300 s'],
  ])('%s of %s is refused with the allowed values', (name, value, expected) => {
    const [message = ''] = messages({ [name]: value });
    expect(message).toContain(`${name} is ${JSON.stringify(value)}: use a whole number`);
    expect(message).toContain(expected);
  });

  test("every limit's default is within its range", () => {
    const defaults = new Map<string, number>(Object.entries(DEFAULT_LIMITS));
    const outside = Object.entries(LIMIT_SETTINGS).filter(([limit, range]) => {
      const byDefault = defaults.get(limit) ?? Number.NaN;
      return !(byDefault >= range.min && byDefault <= range.max);
    });
    expect(outside).toEqual([]);
    expect(Object.keys(LIMIT_SETTINGS).toSorted()).toEqual(Object.keys(DEFAULT_LIMITS).toSorted());
  });

  test('no two settings have the same name', () => {
    expect(new Set(SETTINGS.map((setting) => setting.name)).size).toBe(SETTINGS.length);
  });

  test.each([
    ['0', 'from 1 KiB to 1 MiB'],
    ['-1', 'a whole number of bytes'],
    ['1.5', 'a whole number of bytes'],
    ['64k', 'KiB, MiB, GiB'],
    ['2GiB', 'from 1 KiB to 1 MiB'],
    [' 65536', 'a whole number of bytes'],
    ['1e5', 'a whole number of bytes'],
  ])('refuses SVC_MAX_HEAD_BYTES=%j by name with the range', (value, fix) => {
    const [message] = messages({ SVC_MAX_HEAD_BYTES: value });
    expect(message).toContain(`SVC_MAX_HEAD_BYTES is ${JSON.stringify(value)}`);
    expect(message).toContain(fix);
  });

  test.each([
    [{ SVC_DATABASE_REPLICA_URL: 'https://replica.example.com' }, 'needs SVC_DATABASE_URL'],
    [
      { SVC_DATABASE_REPLICA_URL: 'https://replica.example.com', SVC_DATABASE_URL: 'file:a.db' },
      'a file has no replica',
    ],
    [{ SVC_DATABASE_REPLICA_URL: 'file:b.db', SVC_DATABASE_URL: 'libsql://db.example.com' }, 'is a file'],
    [{ SVC_DATABASE_REPLICA_URL: 'http://r.example.com', SVC_DATABASE_URL: 'libsql://db.example.com' }, 'not a usable'],
  ])('refuses the replica of %j', (env, problem) => {
    expect(messages(env).join()).toContain(problem);
  });

  test.each(['On', 'true', 'auto ', '1'])('%j is not a value of SVC_SANDBOX_PROXY', (text) => {
    const parsed = parseSettings({ SVC_SANDBOX_PROXY: text });
    expect(parsed).toMatchObject({ ok: false, error: [{ message: expect.stringContaining('use auto, on or off') }] });
  });

  test.each(['--privileged', 'a b', '-v', 'a\nb'])(
    '%j is not an image: an engine could read it as an option',
    (text) => {
      expect(parseSettings({ SVC_SANDBOX_IMAGE: text }).ok).toBe(false);
    },
  );

  test('a size unit on a number of seconds is refused', () => {
    expect(messages({ SVC_IDLE_TUNNEL_SECONDS: '1KiB' })[0]).toContain('a whole number of seconds from 1 s');
  });

  test('the cache time of a credential can be shortened but not lengthened', () => {
    expect(messages({ SVC_CREDENTIAL_CACHE_SECONDS: '0' })).toEqual([]);
    expect(messages({ SVC_CREDENTIAL_CACHE_SECONDS: '301' })[0]).toContain('from 0 s to 300 s');
  });

  test('all bad values are reported together', () => {
    expect(messages({ SVC_MAX_HEADERS: 'x', SVC_CONTROL_URL: 'nope', SVC_HOME: '' })).toHaveLength(3);
  });

  test('an empty value is refused rather than treated as unset', () => {
    expect(messages({ SVC_VAULT_KEY: '' })[0]).toBe('SVC_VAULT_KEY is empty: give it a value, or unset it');
  });

  test('a buffer budget below one body is refused', () => {
    expect(messages({ SVC_MAX_BUFFERED_BODIES_BYTES: '1MiB' })[0]).toContain('raise it to 32 MiB');
  });

  test.each([
    ['SVC_VAULT_KEY', 'too-short-secret'],
    ['SVC_VAULT_KEY', `${key}=`],
    ['SVC_DATABASE_TOKEN', 'has space'],
  ])('a bad %s is refused without quoting it', (name, value) => {
    const [message] = messages({ [name]: value });
    expect(message).toContain(name);
    expect(message).not.toContain(value);
  });

  test('a database URL with a password in it is refused without quoting it', () => {
    const [message] = messages({ SVC_DATABASE_URL: 'libsql://u:hunter22@db.example.com' });
    expect(message).toContain('SVC_DATABASE_URL');
    expect(message).not.toContain('hunter22');
  });
});

describe('parseControlUrl', () => {
  test.each(['https://control.example.com', 'http://127.0.0.1:7420', 'http://localhost:1', 'http://[::1]:1'])(
    'takes %s',
    (url) => expect(parseControlUrl(url)).toEqual({ ok: true, value: url }),
  );

  test.each([
    'http://control.example.com',
    'http://127.0.0.1.example.com',
    'ftp://x',
    'https://u:p@x',
    'https://x/v1',
    'https://x/?a',
    'x',
  ])('refuses %s', (url) => expect(parseControlUrl(url).ok).toBe(false));
});

const anchorsOf = (env: Record<string, string>) => {
  const parsed = parseSettings(env);
  return parsed.ok ? parsed.value.anchors : 'refused';
};

describe('SVC_AUDIT_HEADS_', () => {
  test('heads are sent nowhere by default, and daily if a destination is set', () => {
    expect(anchorsOf({})).toBeUndefined();
    expect(anchorsOf({ SVC_AUDIT_HEADS_LOG: 'off' })).toBeUndefined();
    expect(anchorsOf({ SVC_AUDIT_HEADS_LOG: 'on' })).toEqual({ url: null, isLogged: true, hours: 24 });
    const url = 'https://hooks.example.com/in?key=1';
    expect(anchorsOf({ SVC_AUDIT_HEADS_URL: url, SVC_AUDIT_HEADS_HOURS: '6' })).toEqual({
      url,
      isLogged: false,
      hours: 6,
    });
    expect(anchorsOf({ SVC_AUDIT_HEADS_URL: 'http://127.0.0.1:9/in' })).toMatchObject({ url: 'http://127.0.0.1:9/in' });
  });

  test.each([
    'http://hooks.example.com/p4ss',
    'https://u:p4ss@x.example',
    'https://x.example:8443/p4ss',
    'p4ss',
    'https://x/#p4ss',
  ])('the URL %s is refused without quoting it', (url) => {
    const [message] = messages({ SVC_AUDIT_HEADS_URL: url });
    expect(message).toContain('SVC_AUDIT_HEADS_URL');
    expect(message).not.toContain('p4ss');
  });

  test.each([
    { SVC_AUDIT_HEADS_LOG: 'yes' },
    { SVC_AUDIT_HEADS_LOG: 'on', SVC_AUDIT_HEADS_HOURS: '0' },
    { SVC_AUDIT_HEADS_LOG: 'on', SVC_AUDIT_HEADS_HOURS: '169' },
    { SVC_AUDIT_HEADS_HOURS: '6' },
  ])('refuses %j', (env) => expect(messages(env)).toHaveLength(1));
});
