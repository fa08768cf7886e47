import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { INJECTION_SCHEMES } from '../model/host_binding.ts';
import { SCHEME_PARAMETERS } from './host_binding_rules.ts';
import {
  duplicateBinding,
  hostBindingInput,
  hostBindingRecord,
  toHostBinding,
  type HostBindingRecord,
} from './host_binding.ts';

const VALID = { host: 'api.example.com', scheme: 'bearer', credential_ref: 'vault://user/demo' };
const SWAP = { emit_mechanism: 'sentinel-swap', sentinel: { value: 'sk-not-a-real-key-0000', env: 'DEMO_KEY' } };
const SIGV4 = { scheme: 'sigv4-resign', access_key_id: 'AKIAIOSFODNN7EXAMPLE', region: 'eu-central-1', service: 's3' };
/** A valid binding of each scheme. */
const BY_SCHEME: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  bearer: VALID,
  basic: { ...VALID, scheme: 'basic', username: 'x-access-token' },
  'header-template': { ...VALID, scheme: 'header-template', header: 'X-Api-Key', template: 'Token {token}' },
  'query-param': { ...VALID, scheme: 'query-param', query_param: 'api_key' },
  'sigv4-resign': { ...VALID, ...SIGV4, session_token_ref: 'vault://user/session' },
};

/** `field message` of everything wrong with an input. */
function problems(input: unknown): string[] {
  const checked = hostBindingInput.safeParse(input);
  return checked.success ? [] : checked.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`);
}

function record(change: Readonly<Record<string, unknown>> = {}): HostBindingRecord {
  const input = hostBindingInput.parse({ ...VALID, ...change });
  const time = '2026-01-02T03:04:05.678Z';
  return hostBindingRecord.parse({
    ...input,
    id: 'bnd_01234567890123456789abcdef',
    created_at: time,
    updated_at: time,
  });
}

describe('host binding input', () => {
  test.each(INJECTION_SCHEMES)('accepts a binding of scheme %s', (scheme) => {
    expect(problems(BY_SCHEME[scheme])).toEqual([]);
    expect(problems({ ...BY_SCHEME[scheme], ...SWAP })).toEqual([]);
  });

  test('makes hosts canonical and fills in the defaults', () => {
    const input = { ...VALID, host: '*.BÜCHER.example', allowed_hosts: ['API.bücher.example:443', 'b.example'] };
    expect(hostBindingInput.parse(input)).toEqual({
      ...VALID,
      owner: 'personal',
      host: '*.xn--bcher-kva.example',
      emit_mechanism: 'inject',
      allowed_hosts: ['api.xn--bcher-kva.example', 'b.example'],
      body: 'buffer',
    });
  });

  test('names everything that is missing, and what to write', () => {
    expect(problems({})).toEqual([
      'host is missing: write the host the credential is for, such as api.example.com or *.example.com',
      'credential_ref is missing: write a reference to a stored secret, such as vault://user/demo',
      'scheme is missing: write one of bearer, basic, header-template, query-param, sigv4-resign',
    ]);
  });

  test.each([null, undefined, 5, 'x', [], true])('refuses %j, which is not an object', (input) => {
    expect(problems(input)).toEqual([' must be a binding, an object']);
  });

  test.each([
    ['usrname', 'username'],
    ['credential', 'credential_ref'],
    ['credentialRef', 'credential_ref'],
    ['emit', 'emit_mechanism'],
    ['emit-mechanism', 'emit_mechanism'],
    ['allowed-host', 'allowed_hosts'],
    ['Host', 'host'],
    ['efect', 'effect'],
    ['hots', 'host'],
  ])('an unknown field %s: did you mean %s?', (field, near) => {
    expect(problems({ ...VALID, [field]: 'x' })).toEqual([` unknown field "${field}": did you mean "${near}"?`]);
  });

  test('an unknown field without a near match is named alone, and a long one is truncated', () => {
    expect(problems({ ...VALID, zzzzzz: 1 })).toEqual([' unknown field "zzzzzz"']);
    expect(problems({ ...VALID, ['k'.repeat(5_000)]: 1 })[0]?.length).toBeLessThan(200);
  });

  test('an unknown field does not hide other problems', () => {
    expect(problems({ ...VALID, scheme: 'basic', usrname: 'x' })).toEqual([
      ' unknown field "usrname": did you mean "username"?',
      'username is missing: scheme "basic" needs the user name that goes with the credential',
    ]);
  });
});

describe('one field changed at a time', () => {
  test.each([
    [{ host: '*.com' }, 'host covers all of ".com"'],
    [{ host: 'api.example.com:80' }, 'host has port 80, which is for plain http'],
    [{ host: 'api.example.com:0' }, 'host is followed by a port that is not a number from 1 to 65535'],
    [{ host: 'api example.com' }, 'host has a space'],
    [{ host: '\u0430pi.example.com' }, 'U+0430'],
    [{ host: 's3.<region>.amazonaws.com' }, 'host still contains the placeholder <region>'],
    [{ host: 5 }, 'host must be text'],
    [{ host: 'a'.repeat(300) }, 'host is longer than 261 characters'],
    [
      { scheme: 'beaer' },
      'scheme is "beaer", which is none of bearer, basic, header-template, query-param, sigv4-resign: did you mean "bearer"?',
    ],
    [{ scheme: 5 }, 'scheme must be one of'],
    [{ emit_mechanism: 'swap' }, 'emit_mechanism is "swap"'],
    [
      { effect: 'readonly' },
      'effect is "readonly", which is none of read, write, delete, spend, external-send: did you mean "read"?',
    ],
    [{ effect: 'READ' }, 'did you mean "read"?'],
    [{ body: 'streaming' }, 'did you mean "stream"?'],
    [{ owner: 'me' }, 'owner is "me"'],
    [{ credential_ref: 'user/demo' }, 'credential_ref must be a reference such as vault://user/demo'],
    [{ credential_ref: 'vault://User/demo' }, 'upper-case'],
    [{ credential_ref: 'vault://connectors/github' }, 'reserved'],
    [{ credential_ref: 'vault://user/<name>' }, 'still contains the placeholder <name>'],
    [{ credential_ref: `vault://${'a'.repeat(300)}` }, 'credential_ref is longer than'],
    [{ allowed_hosts: 'api.example.com' }, 'allowed_hosts must be a list'],
    [
      { allowed_hosts: ['ok.example', 'api.example.com:8443'] },
      'allowed_hosts has api.example.com:8443, at another port than host: write a binding for each port',
    ],
    [
      { host: '*.example.com:8443', allowed_hosts: ['api.example.com'] },
      'allowed_hosts has api.example.com, at another',
    ],
    [{ allowed_hosts: ['*.example.com'] }, 'allowed_hosts.0 has a "*" in it: allowed hosts are exact'],
    [{ allowed_hosts: Array.from({ length: 101 }, (_, n) => `h${n}.example`) }, 'more than 100 hosts'],
    [{ description: 'a\nb' }, 'description contains a line break'],
    [{ description: 'a\u202eb' }, 'description contains a line break or another control'],
    [{ description: 'x'.repeat(501) }, 'description is longer than 500'],
    [{ description: 'for <team>' }, 'description still contains the placeholder <team>'],
  ])('refuses %j', (change, problem) => {
    const found = problems({ ...VALID, ...change });
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(problem);
  });

  test.each([
    ['Host', 'frames or routes'],
    ['content-length', 'frames or routes'],
    ['Transfer-Encoding', 'frames or routes'],
    ['Connection', 'frames or routes'],
    ['Proxy-Authorization', 'frames or routes'],
    ['Proxy-Anything', 'frames or routes'],
    ['Sec-WebSocket-Key', 'frames or routes'],
    ['X-Api-Key:', '":"'],
    ['X Api Key', 'no header name may have'],
    ['X-Ключ', 'no header name may have'],
    ['X\r\nEvil', 'no header name may have'],
    ['', 'is empty'],
  ])('refuses the header %j', (header, problem) => {
    expect(problems({ ...BY_SCHEME['header-template'], header }).join()).toContain(
      `header ${problem.startsWith('frames') ? 'is' : ''}`,
    );
    expect(problems({ ...BY_SCHEME['header-template'], header }).join()).toContain(problem);
  });

  test.each(['Authorization', 'Cookie', 'PRIVATE-TOKEN', 'x-api-key', 'Sec-WebSocket-Protocol'])(
    'accepts the header %s',
    (header) => {
      expect(problems({ ...BY_SCHEME['header-template'], header })).toEqual([]);
    },
  );

  test.each([
    ['Token token', 'has no {token}'],
    ['{token} {token}', 'more than once'],
    ['Bearer <token>', 'still contains the placeholder <token>'],
    ['Bearer ${token}', 'without "$"'],
    ['{{token}}', 'second pair of braces'],
    ['{{ token }}', 'second pair of braces'],
    ['{user} {token}', 'only {token} is replaced'],
    ['{TOKEN}', 'only {token} is replaced'],
    ['{token}\r\nX-Evil: 1', 'line break'],
    ['{token}\u0000', 'printable ASCII'],
    ['\t{token}', 'printable ASCII'],
    ['{token} é', 'printable ASCII'],
    [' {token}', 'begins or ends with a space'],
    ['x'.repeat(1020) + '{token}', 'longer than 1024'],
  ])('refuses the template %j', (template, problem) => {
    const found = problems({ ...BY_SCHEME['header-template'], template });
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(`template `);
    expect(found[0]).toContain(problem);
  });

  test('a secret written into a template or a reference by mistake is never quoted', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Z0-9]{16,40}$/), (secret) => {
        const faults = [
          ...problems({ ...BY_SCHEME['header-template'], template: `Token ${secret}` }),
          ...problems({ ...BY_SCHEME['header-template'], template: `{${secret.replaceAll(/\d/g, 'X')}} {token}` }),
          ...problems({ ...VALID, credential_ref: secret }),
          ...problems({ ...VALID, credential_ref: `<${secret}-${secret}>` }),
          ...problems({ ...VALID, ...SWAP, sentinel: { value: `${secret} ` } }),
          ...problems({ ...VALID, ...SWAP, sentinel: secret }),
          ...problems({ ...BY_SCHEME['sigv4-resign'], access_key_id: `${secret}/` }),
        ];
        expect(faults).toHaveLength(7);
        expect(faults.join()).not.toContain(secret.replaceAll(/\d/g, 'X'));
        expect(faults.join()).not.toContain(secret);
      }),
    );
  });

  test.each(['', 'a b', 'a&b', 'a=b', 'a%20', 'é', '<name>'])('refuses the query parameter %j', (query_param) => {
    expect(problems({ ...BY_SCHEME['query-param'], query_param })).toHaveLength(1);
  });

  test.each(['*', 'us-*', 'us-east-1,us-west-2', 'us-east-1,eu-*'])('accepts the set of regions %j', (region) => {
    expect(problems({ ...BY_SCHEME['sigv4-resign'], region })).toEqual([]);
  });

  test.each([
    ['basic', { username: 'a:b' }, 'username contains a ":"'],
    ['basic', { username: 'a\nb' }, 'username contains a line break'],
    ['sigv4-resign', { region: 'eu central' }, 'region has a character'],
    ['sigv4-resign', { region: '' }, 'region has a character'],
    ['sigv4-resign', { region: 'us-*-1' }, 'region has a character'],
    ['sigv4-resign', { region: 'us-east-1,' }, 'region has a character'],
    ['sigv4-resign', { region: 'us-east-1, us-west-2' }, 'region has a character'],
    ['sigv4-resign', { region: '<region>' }, 'region still contains the placeholder <region>'],
    ['sigv4-resign', { service: 's3/x' }, 'service has a character'],
    ['sigv4-resign', { access_key_id: 'AKID/20260101' }, 'access_key_id is not an access key id'],
    ['sigv4-resign', { session_token_ref: 'secret' }, 'session_token_ref must be a reference'],
    ['sigv4-resign', { service: 'execute-api', body: 'stream' }, 'body is "stream"'],
  ])('%s refuses %j', (scheme, change, problem) => {
    const found = problems({ ...BY_SCHEME[scheme], ...change });
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(problem);
  });

  test('S3 may stream a signed body, and basic may have an empty user name', () => {
    expect(problems({ ...BY_SCHEME['sigv4-resign'], body: 'stream' })).toEqual([]);
    expect(problems({ ...BY_SCHEME['basic'], username: '' })).toEqual([]);
  });
});

describe('scheme parameters', () => {
  test.each(INJECTION_SCHEMES.flatMap((scheme) => SCHEME_PARAMETERS[scheme].required.map((field) => [scheme, field])))(
    '%s without %s is refused by name',
    (scheme, field) => {
      const { [field]: _left, ...rest } = BY_SCHEME[scheme] ?? {};
      const found = problems(rest);
      expect(found).toHaveLength(1);
      expect(found[0]).toMatch(new RegExp(`^${field} is missing: scheme "${scheme}" needs `));
    },
  );

  test('parameters of another scheme are refused, each by name', () => {
    const { host, credential_ref, ...sigv4 } = BY_SCHEME['sigv4-resign'] ?? {};
    expect(problems({ ...VALID, ...sigv4, scheme: 'bearer' })).toEqual(
      ['access_key_id', 'region', 'service', 'session_token_ref'].map(
        (field) =>
          `${field} belongs to scheme "sigv4-resign", and the scheme is "bearer": remove it or change the scheme`,
      ),
    );
    expect([host, credential_ref]).toEqual([VALID.host, VALID.credential_ref]);
  });
});

describe('sentinels', () => {
  test.each([
    [{ emit_mechanism: 'sentinel-swap' }, 'sentinel is missing'],
    [{ sentinel: SWAP.sentinel }, 'sentinel belongs to emit_mechanism "sentinel-swap"'],
    [{ ...SWAP, sentinel: 'sk-not-a-real-key-0000' }, 'sentinel must be {value, env?}, an object'],
    [{ ...SWAP, sentinel: {} }, 'sentinel.value is missing'],
    [{ ...SWAP, sentinel: { value: 'x'.repeat(15) } }, 'sentinel.value is shorter than 16'],
    [{ ...SWAP, sentinel: { value: 'sk not a real key 0000' } }, 'sentinel.value contains a space'],
    [{ ...SWAP, sentinel: { value: 'x'.repeat(1025) } }, 'sentinel.value is longer than 1024'],
    [{ ...SWAP, sentinel: { value: '<your-sentinel-here>' } }, 'sentinel.value still contains the placeholder'],
    [{ ...SWAP, sentinel: { ...SWAP.sentinel, name: 'x' } }, 'sentinel unknown field "name"'],
    [{ ...SWAP, sentinel: { ...SWAP.sentinel, env: 'A-B' } }, 'sentinel.env is not a valid name'],
    [{ ...SWAP, sentinel: { ...SWAP.sentinel, env: '1A' } }, 'sentinel.env is not a valid name'],
    [{ ...SWAP, sentinel: { ...SWAP.sentinel, env: 'LD_PRELOAD' } }, 'sentinel.env is "LD_PRELOAD", which controls'],
    [{ ...SWAP, sentinel: { ...SWAP.sentinel, env: 'https_proxy' } }, 'which controls'],
    [{ ...SWAP, sentinel: { ...SWAP.sentinel, env: 'NODE_OPTIONS' } }, 'which controls'],
    [{ ...SWAP, sentinel: { ...SWAP.sentinel, env: 'SVC_TOKEN' } }, 'which controls'],
  ])('refuses %j', (change, problem) => {
    const found = problems({ ...VALID, ...change });
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(problem);
  });
});

describe('domain binding', () => {
  test("a reference lives in the namespace of its binding's owner", () => {
    const binding = toHostBinding(record({ ...SIGV4, session_token_ref: 'vault://team/session', owner: 'enterprise' }));
    expect(binding).toEqual({
      id: 'bnd_01234567890123456789abcdef',
      owner: 'enterprise',
      host: 'api.example.com',
      credential: { owner: 'enterprise', path: 'user/demo' },
      injection: {
        scheme: 'sigv4-resign',
        accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
        region: 'eu-central-1',
        service: 's3',
        sessionTokenRef: { owner: 'enterprise', path: 'team/session' },
      },
      emit: { mechanism: 'inject' },
      allowedHosts: [],
      body: 'buffer',
    });
  });

  test.each([
    ['bearer', {}],
    ['basic', { username: 'x-access-token' }],
    ['header-template', { header: 'X-Api-Key', template: 'Token {token}' }],
    ['query-param', { queryParam: 'api_key' }],
  ])('carries the parameters of %s', (scheme, parameters) => {
    expect(toHostBinding(record(BY_SCHEME[scheme])).injection).toEqual({ scheme, ...parameters });
  });

  test('carries sentinel, effect, allowed hosts and body', () => {
    const binding = toHostBinding(
      record({ ...SWAP, effect: 'read', allowed_hosts: ['A.example:443'], body: 'stream' }),
    );
    expect(binding).toMatchObject({
      emit: { mechanism: 'sentinel-swap', sentinel: SWAP.sentinel.value, env: 'DEMO_KEY' },
      effect: 'read',
      allowedHosts: ['a.example'],
      body: 'stream',
    });
  });

  test('an unvalidated record is a bug', () => {
    expect(() => toHostBinding({ ...record(), scheme: 'basic' })).toThrow('was not validated: username');
    expect(() => toHostBinding({ ...record(), emit_mechanism: 'sentinel-swap' })).toThrow('sentinel');
    expect(() => toHostBinding({ ...record(), credential_ref: 'user/demo' })).toThrow('credential_ref');
  });

  test('a record with an unknown field is refused, because the field may narrow the binding', () => {
    expect(hostBindingRecord.safeParse({ ...record(), allowed_paths: ['/v1'] }).success).toBe(false);
  });

  test('a record without its metadata is a valid input again', () => {
    const { id, created_at, updated_at, ...input } = record({ ...SWAP, effect: 'read', description: 'demo' });
    expect(hostBindingInput.parse(input)).toEqual(input);
    expect([id, created_at, updated_at]).not.toContain(undefined);
  });
});

describe('duplicate bindings', () => {
  const plain = record();
  const swap = record(SWAP);

  test('one pattern twice without a sentinel, or with the same one, is a duplicate', () => {
    expect(duplicateBinding([swap, plain], hostBindingInput.parse(VALID))).toBe(plain);
    expect(duplicateBinding([plain, swap], hostBindingInput.parse({ ...VALID, ...SWAP }))).toBe(swap);
  });

  test('the same sentinel in another environment variable is still a duplicate', () => {
    const sentinel = { ...SWAP.sentinel, env: 'OTHER_KEY' };
    expect(duplicateBinding([swap], hostBindingInput.parse({ ...VALID, ...SWAP, sentinel }))).toBe(swap);
  });

  test.each([
    ['another pattern', { host: '*.example.com' }],
    ['another sentinel', { ...SWAP, sentinel: { value: 'sk-another-stand-in-0000' } }],
    ['another owner', { owner: 'enterprise' }],
  ])('%s is not a duplicate', (_what, change) => {
    expect(duplicateBinding([plain, swap], hostBindingInput.parse({ ...VALID, ...change }))).toBeNull();
  });

  test('a binding is not a duplicate of itself, so that it can be updated', () => {
    expect(duplicateBinding([plain], plain)).toBeNull();
    expect(duplicateBinding([plain], { ...plain, id: 'bnd_other' })).toBe(plain);
  });
});
