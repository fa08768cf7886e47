import { describe, expect, test } from 'vitest';
import { sampleBinding } from '../model/testing/sample_binding.ts';
import { sampleConnector, sampleOperation } from '../connect/testing/sample_connector.ts';
import type { ClientCertificate, CredentialRef, HostBinding } from '../model/host_binding.ts';
import type { Operation } from '../model/connector.ts';
import { explainReply } from '../wire/host_bindings.ts';
import { explainRequest, type Known } from './explain.ts';

const BINDING = sampleBinding({ host: 'api.example.com' });

const everything = () => true;
const nothing = () => false;
function allBut(missing: string) {
  return ({ path }: CredentialRef) => path !== missing;
}

function explain(
  bindings: readonly HostBinding[],
  url: string,
  method = 'GET',
  isStored: (ref: CredentialRef) => boolean = everything,
) {
  const explained = explainRequest({ bindings, isStored }, { method, url });
  if (!explained.ok) throw new Error(explained.error.message);
  return explained.value;
}

describe('explain', () => {
  test('a bound host: which binding, where the credential goes, and that it wins', () => {
    const explained = explain([BINDING], 'https://API.example.com/v1/items?token=s3cr3t');
    expect(explained).toMatchObject({ decision: 'binding', code: null, host: 'api.example.com', path: '/v1/items' });
    expect(explained.bindings).toMatchObject([{ id: BINDING.id, credential_ref: 'vault://user/demo', refusal: null }]);
    expect(explained.reasons.join(' ')).toMatch(/personal binding.*Authorization: Bearer <credential>.*removed first/);
    expect(JSON.stringify(explained)).not.toContain('s3cr3t');
  });

  test('says what happens to cookies, and which tokens a reply may contain', () => {
    const plain = explain([BINDING], 'https://api.example.com/').reasons.join(' ');
    expect(plain).toContain('Cookies and authentication challenges are removed from the reply.');
    expect(plain).not.toContain('hand out');
    const kept = explain([{ ...BINDING, keepCookies: true }], 'https://api.example.com/oauth/token');
    expect(kept.reasons.join(' ')).toMatch(/are kept \(keep_cookies\).* may contain OAuth tokens/);
  });

  test('says how many requests get the credential', () => {
    const limited = { ...BINDING, requestsPerMinute: 60, requestsPerDay: 2000 };
    expect(explain([limited], 'https://api.example.com/').reasons.join(' ')).toContain(
      'At most 60 a minute and 2000 a day get the credential on each machine',
    );
    const bytes = explain([{ ...BINDING, bytesPerDay: 500_000_000 }], 'https://api.example.com/').reasons.join(' ');
    expect(bytes).toContain('After 500 MB a day of bodies');
    expect(bytes).not.toContain('At most');
  });

  test.each([
    [{ scheme: 'basic', username: 'x-access-token' }, 'user name "x-access-token"'],
    [{ scheme: 'header-template', header: 'X-Api-Key', template: 'key {token}' }, 'the header X-Api-Key'],
    [{ scheme: 'query-param', queryParam: 'key' }, 'the query parameter key'],
    [
      { scheme: 'sigv4-resign', accessKeyId: 'AKID', region: 'eu-central-1', service: 's3' },
      'an AWS version-4 signature for s3 in eu-central-1 by AKID',
    ],
    [
      { scheme: 'sigv4-resign', accessKeyId: 'AKID', region: 'us-east-1,eu-*', service: 's3' },
      'an AWS version-4a signature for s3 in us-east-1,eu-* by AKID',
    ],
  ] as const)('describes the place of the credential: %o', (injection, words) => {
    expect(explain([{ ...BINDING, injection }], 'https://api.example.com/').reasons.join(' ')).toContain(words);
  });

  test('plain http is refused for a host with a client certificate', () => {
    const credential = { owner: 'personal', path: 'user/client' } as const;
    const certificates = [{ id: 'crt_1', host: 'api.example.com', credential }];
    const url = 'http://api.example.com/';
    const explained = explainRequest({ bindings: [], isStored: everything, certificates }, { method: 'GET', url });
    expect(explained).toMatchObject({ value: { decision: 'refused' } });
    expect(JSON.stringify(explained)).toContain('for a host with a binding, a connector or a client certificate');
  });

  test('an unbound host is forwarded unmodified', () => {
    const explained = explain([BINDING], 'https://other.example.com/');
    expect(explained).toMatchObject({ decision: 'passthrough', code: null, bindings: [] });
    expect(explained.reasons.join(' ')).toContain('forwarded unmodified');
  });

  test('says that a wildcard does not cover its own suffix', () => {
    const explained = explain([{ ...BINDING, host: '*.example.com' }], 'https://example.com/');
    expect(explained.reasons).toContain('*.example.com covers the hosts below example.com, not example.com itself.');
  });

  test.each([
    [{ effect: 'read' }, 'POST', 'effect_not_allowed'],
    [{ allowedHosts: ['other.example.com'] }, 'GET', 'host_not_allowed'],
  ] as const)('a violated contract is refused, never passed through: %o', (change, method, code) => {
    const explained = explain([{ ...BINDING, ...change }], 'https://api.example.com/', method);
    expect(explained).toMatchObject({ decision: 'refused', code, bindings: [{ refusal: { code } }] });
  });

  test.each([
    ['http://api.example.com/', 'non_connect_proxy_request'],
    ['https://api.example.com:8443/', 'connect_port_not_allowed'],
    ['https://127.0.0.1/', 'passthrough_target_not_allowed'],
    ['https://0x7f.1/', 'passthrough_target_not_allowed'],
    ['https://[::ffff:10.0.0.1]/', 'passthrough_target_not_allowed'],
  ])('%s is refused with %s', (url, code) => {
    expect(explain([BINDING], url)).toMatchObject({ decision: 'refused', code, bindings: [] });
  });

  test('another port is another host, which has to be named', () => {
    const ported = { ...BINDING, host: 'api.example.com:8443' };
    expect(explain([ported], 'https://api.example.com:8443/')).toMatchObject({
      decision: 'binding',
      host: 'api.example.com:8443',
    });
    expect(explain([ported], 'https://api.example.com:443/')).toMatchObject({
      decision: 'passthrough',
      host: 'api.example.com',
    });
    const refused = explain([BINDING, { ...BINDING, host: '*.example.com' }], 'https://api.example.com:8443/');
    expect(refused.reasons.join(' ')).toContain('svc allow api.example.com:8443');
    for (const url of ['https://api.example.com:80/', 'https://10.0.0.5:8443/']) {
      const never = explain([BINDING], url);
      expect(never).toMatchObject({ code: 'connect_port_not_allowed' });
      expect(never.reasons.join(' ')).not.toContain('svc allow');
    }
  });

  test('a public address is passthrough, and a bound private one takes the binding path', () => {
    expect(explain([], 'https://8.8.8.8/')).toMatchObject({ decision: 'passthrough' });
    expect(explain([{ ...BINDING, host: '10.0.0.5' }], 'https://10.0.0.5/')).toMatchObject({ decision: 'binding' });
  });

  describe('several accounts on one host', () => {
    const swap: HostBinding = {
      ...BINDING,
      id: 'bnd_00000000000000000000000002',
      emit: { mechanism: 'sentinel-swap', sentinel: 's'.repeat(16) },
    };
    const other: HostBinding = {
      ...swap,
      id: 'bnd_00000000000000000000000003',
      emit: { mechanism: 'sentinel-swap', sentinel: 't'.repeat(16) },
    };

    test('the one without a sentinel decides, and the choice is explained', () => {
      const explained = explain([swap, { ...BINDING, effect: 'read' }], 'https://api.example.com/', 'POST');
      expect(explained).toMatchObject({ decision: 'refused', code: 'effect_not_allowed' });
      expect(explained.bindings.map(({ refusal }) => refusal?.code ?? null)).toEqual([null, 'effect_not_allowed']);
      expect(explained.reasons.at(-1)).toContain('the one without a sentinel for every other request');
    });

    test('with sentinels alone, a request without one is forwarded unmodified', () => {
      const explained = explain([swap, other], 'https://api.example.com/');
      expect(explained.decision).toBe('binding');
      expect(explained.reasons.at(-1)).toContain('without one the request is forwarded unmodified');
    });

    test('is refused if each of them refuses', () => {
      const list = [swap, other].map((each): HostBinding => ({ ...each, effect: 'read' }));
      expect(explain(list, 'https://api.example.com/', 'POST')).toMatchObject({ code: 'effect_not_allowed' });
    });
  });

  test.each([
    ['G ET', 'https://a.example/', 'method', 'not an HTTP method'],
    ['', 'https://a.example/', 'method', 'not an HTTP method'],
    ['get', 'https://a.example/', 'method', 'write GET'],
    ['CONNECT', 'https://a.example/', 'method', 'CONNECT'],
    ['GET', 'api.example.com', 'url', 'in full'],
    ['GET', 'wss://a.example/', 'url', 'https://'],
    ['GET', 'file:///etc/passwd', 'url', 'not an https URL'],
    ['GET', 'https://me:s3cr3t@a.example/', 'url', 'user name or password'],
    ['GET', 'https://1.2.3.4.5/', 'url', 'in full'],
    ['GET', 'https://a!b.example/', 'url', 'character'],
  ])('refuses the input %s %s, naming the field', (method, url, field, problem) => {
    const explained = explainRequest({ bindings: [], isStored: everything }, { method, url });
    expect(explained).toMatchObject({ ok: false, error: { field } });
    expect(explained.ok ? '' : explained.error.message).toContain(problem);
    expect(JSON.stringify(explained)).not.toContain('s3cr3t');
  });

  describe('a credential that is not stored', () => {
    test('is refused as the proxy would refuse it, with the command that stores it', () => {
      const explained = explain([BINDING], 'https://api.example.com/', 'GET', nothing);
      expect(explained).toMatchObject({ decision: 'refused', code: 'credential_unavailable' });
      expect(explained.bindings).toMatchObject([{ credential_stored: false, refusal: null }]);
      expect(explained.reasons.at(-1)).toContain('"svc secret set user/demo"');
    });

    test("is looked up with its owner: a user's secret is not the one of an enterprise binding", () => {
      const shared: HostBinding = { ...BINDING, owner: 'enterprise', credential: { owner: 'enterprise', path: 'a' } };
      const explained = explain([shared], 'https://api.example.com/', 'GET', ({ owner }) => owner === 'personal');
      expect(explained).toMatchObject({ code: 'credential_unavailable' });
      expect(explained.reasons.at(-1)).toContain('"svc secret set a --owner enterprise"');
    });

    test('may be a session token', () => {
      const sessionTokenRef = { owner: 'personal', path: 'user/session' } as const;
      const injection = {
        scheme: 'sigv4-resign',
        accessKeyId: 'A',
        region: 'r',
        service: 's3',
        sessionTokenRef,
      } as const;
      const explained = explain([{ ...BINDING, injection }], 'https://api.example.com/', 'GET', allBut('user/session'));
      expect(explained).toMatchObject({ code: 'credential_unavailable', bindings: [{ credential_stored: false }] });
      expect(explained.reasons.at(-1)).toContain('vault://user/session');
    });

    test('does not hide a violated contract, which is checked before it', () => {
      const explained = explain([{ ...BINDING, effect: 'read' }], 'https://api.example.com/', 'POST', nothing);
      expect(explained).toMatchObject({ code: 'effect_not_allowed' });
    });

    test('of one account leaves the other one', () => {
      const emit = { mechanism: 'sentinel-swap', sentinel: 's'.repeat(16) } as const;
      const other: HostBinding = { ...BINDING, id: 'other', emit, credential: { owner: 'personal', path: 'b' } };
      const explained = explain([BINDING, other], 'https://api.example.com/', 'GET', allBut('b'));
      expect(explained).toMatchObject({
        decision: 'binding',
        bindings: [{ credential_stored: true }, { credential_stored: false }],
      });
    });
  });

  test("a personal binding overrides the enterprise's for its pattern, and the text says so", () => {
    const shared: HostBinding = { ...BINDING, id: 'shared', owner: 'enterprise', effect: 'read' };
    const explained = explain([shared, BINDING], 'https://api.example.com/', 'POST');
    expect(explained).toMatchObject({ decision: 'binding', bindings: [{ id: BINDING.id, owner: 'personal' }] });
    expect(explained.reasons[1]).toContain("overrides the enterprise's own");
    expect(explain([BINDING], 'https://api.example.com/').reasons.join()).not.toContain('overrides');
    expect(explain([shared], 'https://api.example.com/').reasons[0]).toContain('an enterprise binding');
  });

  test("has the shape of the control API's reply", () => {
    const explained = explain([BINDING], 'https://api.example.com/v1');
    expect(explainReply.parse(explained)).toEqual(explained);
  });
});

describe('explain of hosts that are not opened', () => {
  const connector = sampleConnector([sampleOperation()]);
  const explainListed = (host: string, connectors = [connector]) => {
    const known = { bindings: [BINDING], connectors, isStored: everything, tunnelled: ['*.example.com'] };
    const found = explainRequest(known, { method: 'DELETE', url: `https://${host}/not-an-operation` });
    if (!found.ok) throw new Error(found.error.message);
    return { ...found.value, told: found.value.reasons.join(' ') };
  };

  test('a listed host is forwarded, and not opened', () => {
    const { decision, code, told } = explainListed('other.example.com');
    expect([decision, code]).toEqual(['passthrough', null]);
    expect(told).toMatch(/svc tunnel list.*is not opened.*--allow other\.example\.com/);
  });

  test('a listed host with a binding is opened', () => {
    expect(explainListed('api.example.com', [])).toMatchObject({ decision: 'binding' });
  });

  test('a listed host of a connector is opened, also for a request that is no operation', () => {
    const hosts = ['connected.example.com'];
    const { told } = explainListed('connected.example.com', [{ ...connector, spec: { ...connector.spec, hosts } }]);
    expect(told).not.toContain('not opened');
    expect(told).toContain('No binding matches');
  });
});

describe('explain of connectors', () => {
  const guarded = sampleOperation({
    name: 'delete-item',
    method: 'DELETE',
    summary: 'Delete an item',
    effect: 'delete',
    approval: 'required',
  });
  const connector = sampleConnector([sampleOperation(), guarded], { id: 'con_00000000000000000000000001' });
  const explainCall = (
    method: string,
    path: string,
    isStored = everything,
    connectors = [connector],
    binding: HostBinding = BINDING,
  ) => {
    const known = { bindings: [binding], connectors, isStored };
    const found = explainRequest(known, { method, url: `https://api.example.com${path}` });
    if (!found.ok) throw new Error(found.error.message);
    expect(explainReply.safeParse(found.value).error).toBeUndefined();
    return { ...found.value, told: found.value.reasons.join(' ') };
  };

  test('an operation comes before the binding of its host', () => {
    const { told, ...found } = explainCall('DELETE', '/items/7?token=s3cr3t');
    expect(found).toMatchObject({
      decision: 'connector',
      code: null,
      bindings: [],
      operation: { fqn: 'acme/items', operation: 'delete-item', approval: 'required', effect: 'delete' },
    });
    expect(told).toMatch(
      /delete-item \("Delete an item"\).*Upgrade and method-override headers would be refused.*needs an approval.*vault:\/\/connectors\/acme\/items is added/,
    );
    expect(JSON.stringify(found)).not.toContain('s3cr3t');
  });

  test("a method in a POST's query cannot bypass an operation, nor lead to another one", () => {
    const create = sampleOperation({
      name: 'create-item',
      method: 'POST',
      path: '/items',
      effect: 'write',
      inputs: [],
    });
    const both = [sampleConnector([guarded, create], { id: connector.id })];
    const evading = explainCall('POST', '/items/7?_method=delete', everything, both);
    expect([evading.decision, evading.code]).toEqual(['refused', 'ambiguous_target']);
    const turned = explainCall('POST', '/items?_method=delete', everything, both);
    expect([turned.code, turned.operation?.operation]).toEqual(['effect_not_allowed', 'create-item']);
    expect(turned.told).toMatch(/Refused: .*_method/);
  });

  test('an operation without its credential is refused, with the command to type', () => {
    const { told, ...found } = explainCall('GET', '/items/7', nothing);
    expect(found).toMatchObject({ decision: 'refused', code: 'credential_unavailable' });
    expect(found.operation).toMatchObject({ credential_stored: false });
    expect(told).toContain('svc connector credential set acme/items');
  });

  test.each(['//items/7', '/%69tems/7', '/items/7/'])(
    'a path that could be read as an operation is refused: %s',
    (path) => {
      const found = explainCall('GET', path);
      expect(found).toMatchObject({ decision: 'refused', code: 'ambiguous_target', operation: null });
      expect(found.told).toContain('read this path differently');
    },
  );

  test('another request to its host goes to the binding, with the reason', () => {
    const binding: HostBinding = { ...BINDING, effect: 'write' };
    const found = explainCall('POST', '/items/7', everything, [connector], binding);
    expect(found).toMatchObject({ decision: 'binding', operation: null });
    expect(found.told).toMatch(/No operation of a connector is POST.*personal binding/);
  });

  test('beside operations that need an approval, a binding without an effect counts as read, with how to change that', () => {
    const refused = explainCall('POST', '/other');
    expect(refused).toMatchObject({ decision: 'refused', code: 'effect_not_allowed' });
    expect(refused.told).toMatch(/counts as "read".*svc binding effect bnd_\w+ write/);
    const read = explainCall('GET', '/other');
    expect(read.decision).toBe('binding');
    expect(read.told).toMatch(/counts as "read" there until.*svc binding effect bnd_\w+ write/);
  });

  test('several matching operations are none, and are named', () => {
    const other = sampleConnector(undefined, { id: 'con_00000000000000000000000002', fqn: 'other/items' });
    const found = explainCall('GET', '/items/7', everything, [connector, other]);
    expect(found.decision).toBe('binding');
    expect(found.told).toContain('get-item of acme/items, get-item of other/items');
  });

  describe('at a GraphQL endpoint', () => {
    const inputs = [{ name: 'query', in: 'body', type: 'string', required: true, description: '' } as const];
    const endpoint = { method: 'POST', path: '/graphql', inputs } as const;
    const read = sampleOperation({ ...endpoint, name: 'read', graphql: { type: 'query' } });
    const merge = sampleOperation({
      ...endpoint,
      name: 'merge',
      effect: 'write',
      approval: 'required',
      graphql: { type: 'mutation', fields: ['merge'] },
    });
    const known = {
      bindings: [BINDING],
      connectors: [sampleConnector([read, merge], { id: connector.id })],
      isStored: everything,
    };
    const ask = (method: string, path: string, document?: string) => {
      const found = explainRequest(known, { method, url: `https://api.example.com${path}`, document });
      if (!found.ok) throw new Error(found.error.message);
      return { ...found.value, told: found.value.reasons.join(' ') };
    };

    test('the document decides, and without one each operation is listed', () => {
      expect(ask('POST', '/graphql', '{ viewer }').operation).toMatchObject({ operation: 'read', approval: 'none' });
      const merged = ask('POST', '/graphql', 'mutation { a: merge { id } }');
      expect(merged).toMatchObject({ decision: 'connector', operation: { operation: 'merge', approval: 'required' } });
      expect(merged.told).toContain('its document asks for mutation merge');
      const open = ask('POST', '/graphql');
      expect(open).toMatchObject({ decision: 'connector', operation: null, code: null });
      expect(open.told).toMatch(/any other query is the operation read .*mutation merge .* needs an approval/);
    });

    test.each([
      ['POST', '/graphql', 'mutation { drop }', 'graphql_operation_not_allowed'],
      ['POST', '/graphql', '{ viewer', 'graphql_unreadable'],
      ['POST', '/graphql?query={viewer}', '{ viewer }', 'graphql_unreadable'],
      ['GET', '/graphql?query={viewer}', undefined, 'graphql_operation_not_allowed'],
      ['PUT', '/graphql', '{ viewer }', 'graphql_operation_not_allowed'],
    ])('%s %s of %s is refused, though the host has a binding', (method, path, document, code) => {
      expect(ask(method, path, document)).toMatchObject({ decision: 'refused', code, bindings: [] });
    });
  });
});

function explainBody(operations: readonly Operation[], body?: string, path = '/refunds') {
  const connectors = [sampleConnector(operations)];
  const known = { bindings: [BINDING], connectors, isStored: () => true };
  const found = explainRequest(known, { method: 'POST', url: `https://api.example.com${path}`, body });
  if (!found.ok) throw new Error(found.error.message);
  return { ...found.value, told: found.value.reasons.join(' ') };
}

describe('explain: a request whose JSON body decides', () => {
  const endpoint = { method: 'POST', path: '/refunds', inputs: [], effect: 'write' } as const;
  const small = sampleOperation({ ...endpoint, name: 'small', json: [{ pointer: '/amount', atMost: 100 }] });
  const other = sampleOperation({ ...endpoint, name: 'other', approval: 'required' });

  test('is the operation that its body makes it, and without one each operation is listed', () => {
    expect(explainBody([small, other], '{"amount":100}').operation).toMatchObject({
      operation: 'small',
      approval: 'none',
    });
    expect(explainBody([small, other], '{"amount":101}').operation).toMatchObject({
      operation: 'other',
      approval: 'required',
    });
    const open = explainBody([small, other]);
    expect(open).toMatchObject({ decision: 'connector', operation: null, code: null });
    expect(open.told).toContain('A body with /amount at most 100 is the operation small of acme/items. Any other body');
  });

  test.each([
    ['{"amount":1,"Amount":2}', '/refunds', 'json_unreadable'],
    ['{"amount":1}', '/refunds?amount=2', 'json_unreadable'],
    ['amount=1', '/refunds', 'json_unreadable'],
    ['{"amount":101}', '/refunds', 'json_operation_not_allowed'],
  ])('%s at %s is refused, though the host has a binding', (body, path, code) => {
    expect(explainBody([small], body, path)).toMatchObject({ decision: 'refused', code, bindings: [] });
  });
});

const connectorWith = (path: string) =>
  sampleConnector([sampleOperation()], { hosts: ['api.example.com'], credential: { owner: 'personal', path } });

describe('explain: the account of a session', () => {
  const account = (path: string): HostBinding => ({
    ...BINDING,
    id: `bnd_${path}`,
    credential: { owner: 'personal', path },
    emit: { mechanism: 'sentinel-swap', sentinel: `placeholder-of-${path}` },
  });
  const ALL = [BINDING, account('user/work'), account('user/other')];
  const explainChosen = (path: string, connectors: Parameters<typeof explainRequest>[0]['connectors'] = []) => {
    const chosen = [{ path, by: 'folder', from: '/home/me/work' }] as const;
    const request = { method: 'GET', url: 'https://api.example.com/items/7' };
    const explained = explainRequest({ bindings: ALL, connectors, isStored: everything, chosen }, request);
    if (!explained.ok) throw new Error(explained.error.message);
    return explained.value;
  };

  test('is named with who chose it, and the others are marked', () => {
    const { decision, bindings, reasons } = explainChosen('user/work');
    expect([decision, bindings.map(({ used }) => used)]).toEqual(['binding', ['not_chosen', 'default', 'not_chosen']]);
    expect(reasons).toContain('The session uses vault://user/work (chosen by the folder /home/me/work) for this host.');
    expect(reasons.join(' ')).toContain('the placeholder of vault://user/demo, vault://user/other is refused');
    expect(reasons.join(' ')).not.toContain('The credential vault://user/demo is added');
  });

  test('without a choice, or with one about other hosts, is the one without a placeholder', () => {
    for (const { bindings, reasons } of [explain(ALL, 'https://api.example.com/'), explainChosen('user/elsewhere')]) {
      expect(bindings.map(({ used }) => used)).toEqual(['default', 'placeholder', 'placeholder']);
      expect(reasons.join(' ')).not.toContain('chosen by');
    }
  });

  test('refuses an operation with the credential of another account', () => {
    expect(explainChosen('user/work', [connectorWith('user/demo')])).toMatchObject({
      decision: 'refused',
      code: 'account_not_chosen',
    });
    const ofLogin = connectorWith('user/demo');
    const credential = {
      ...ofLogin.spec.credential,
      login: { clientId: 'demo', tokenRequest: 'json', hosts: [], paths: [] },
    } as const;
    for (const connector of [connectorWith('user/work'), { ...ofLogin, spec: { ...ofLogin.spec, credential } }]) {
      expect(explainChosen('user/work', [connector])).toMatchObject({ decision: 'connector', code: null });
    }
  });
});

describe('a client certificate', () => {
  const host = 'api.example.com';
  const CERTIFICATE: ClientCertificate = { id: 'crt_1', host, credential: { owner: 'personal', path: 'user/own' } };
  const explainWith = (change: Partial<ClientCertificate>, known: Partial<Known> = {}, method = 'GET') => {
    const certificates = [{ ...CERTIFICATE, ...change }];
    const all = { bindings: [], isStored: everything, ...known, certificates };
    const explained = explainRequest(all, { method, url: `https://${host}/items/7` });
    if (!explained.ok) throw new Error(explained.error.message);
    return { ...explained.value, words: explained.value.reasons.join(' ') };
  };
  const OPENED = 'is opened with the client certificate vault://user/own (crt_1).';
  const NAMES = 'the request has to name this host, and cookies';

  test('opens the connection of passthrough, which is strict, of a binding and of an operation', () => {
    const passthrough = explainWith({});
    expect([passthrough.decision, passthrough.words]).toEqual(['passthrough', expect.stringContaining(OPENED)]);
    expect(passthrough.words).toContain(NAMES);
    const connectors = [sampleConnector([sampleOperation()], { hosts: [host] })];
    for (const known of [{ bindings: [BINDING] }, { connectors }]) {
      const { words } = explainWith({}, known);
      expect(words).toContain(OPENED);
      expect(words).not.toContain(NAMES);
    }
  });

  test('that is not stored, and a method that its effect does not admit, are told', () => {
    expect(explainWith({}, { isStored: nothing }).words).toContain('503 credential_unavailable');
    const refused = explainWith({ effect: 'read' }, { bindings: [BINDING] }, 'POST');
    expect(refused).toMatchObject({ decision: 'refused', code: 'effect_not_allowed' });
  });

  test('counts as one for reading beside operations that need an approval, but not for these', () => {
    const operations = [sampleOperation({ name: 'erase', method: 'DELETE', effect: 'delete', approval: 'required' })];
    const connectors = [sampleConnector(operations, { hosts: [host] })];
    expect(explainWith({}, { connectors }, 'PUT')).toMatchObject({ code: 'effect_not_allowed' });
    expect(explainWith({}, { connectors }, 'DELETE')).toMatchObject({ decision: 'connector', code: null });
  });

  test('is not presented for the requests of a login', () => {
    const { spec, ...rest } = sampleConnector([sampleOperation()], { hosts: [host] });
    const login = { clientId: 'demo', tokenRequest: 'json', hosts: [], paths: [] } as const;
    const connectors = [{ ...rest, spec: { ...spec, credential: { ...spec.credential, login } } }];
    expect(explainWith({}, { connectors }).words).toContain('requests of a login have none');
  });

  test('is of its exact host, which is intercepted though it is listed as tunnelled', () => {
    expect(explainWith({ host: `${host}:8443` }).words).not.toContain('client certificate');
    expect(explainWith({}, { tunnelled: [host] })).toMatchObject({
      decision: 'passthrough',
      words: expect.stringContaining(OPENED),
    });
  });
});
