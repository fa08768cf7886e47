import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { signInLinkReply } from '../../shared/wire/account.ts';
import { ERROR_STATUS, errorBody } from '../../shared/wire/errors.ts';
import { installReply } from '../../shared/wire/connectors/connectors.ts';
import { hostBindingRecord } from '../../shared/wire/host_binding.ts';
import { mcpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import { type RegistryServer, startRegistryServer } from '../marketplace/registry_server.ts';
import { fetchAs } from '../support/fetch_as.ts';
import { countOf } from '../support/full_counts.ts';
import { type DescribedOperation, type Parameter, readDocument } from './api_document.ts';
import { ITEMS_SPEC } from './connector_samples.ts';
import { type ControlPlaneUnderTest, startOnNode } from './programs.ts';
import { TestSidecar } from './sidecar_client.ts';

/** The same calls in each run; a failure names the shrunk call. */
const RUNS = { seed: 20_260_102, numRuns: countOf(25, 10) };

let control: ControlPlaneUnderTest;
let consoleHost: string;
let registry: RegistryServer;
let sidecar: TestSidecar;
let operations: readonly DescribedOperation[];

const hosts = fc.constantFrom('a.example.test', '*.example.test', 'b.example.test', 'EXAMPLE.test');
const paths = fc.constantFrom('user/demo', 'a', 'team/key-1', 'mcp-servers/x/TOKEN');
const binding = fc
  .record({
    owner: fc.constantFrom('personal', 'enterprise'),
    host: hosts,
    credential_ref: fc.constantFrom('vault://user/demo', 'vault://a'),
    effect: fc.constantFrom('read', 'write', 'spend'),
    allowed_hosts: fc.array(fc.constantFrom('a.example.test', 'b.example.test:443'), { maxLength: 2 }),
  })
  .chain((common) =>
    fc.oneof(
      fc.constant({ ...common, scheme: 'bearer' }),
      fc.constant({ ...common, scheme: 'basic', username: '' }),
      fc.constant({ ...common, scheme: 'header-template', header: 'X-Key', template: 'k {token}' }),
      fc.stringMatching(/^[a-z0-9]{16,30}$/).map((value) => {
        return {
          ...common,
          scheme: 'query-param',
          query_param: 'k',
          emit_mechanism: 'sentinel-swap',
          sentinel: { value },
        };
      }),
    ),
  );
const words = fc.constantFrom('latest', 'a b/c', '..', 'ünï', '%2e', 'x'.repeat(300));
/** Specs like the installed one, under other names. */
const spec = fc
  .record({ fqn: fc.constantFrom('fuzz/a', 'fuzz/b'), version: fc.constantFrom('1', '2'), title: fc.constant('Fuzz') })
  .map((connector) => ({ ...ITEMS_SPEC, connector }));
const run = fc.oneof(
  fc.record({ operation: fc.constant('get-item'), args: fc.record({ id: words, q: words }, { requiredKeys: ['id'] }) }),
  fc.record({ operation: fc.constant('create-item'), args: fc.record({ title: words }) }),
  fc.record({ operation: fc.constantFrom('delete-item', 'get-itme'), args: fc.dictionary(words, fc.jsonValue()) }),
);
/** The id of an unknown server, and the placeholder for the server's own id. */
const serverIds = fc.constantFrom('{id}', `mcp_${'0'.repeat(26)}`);
const mcpServer = fc
  .record({
    owner: fc.constantFrom('personal', 'enterprise'),
    name: fc.constantFrom('one', 'two', 'three', 'Four'),
    description: words,
    reference: fc.tuple(serverIds, fc.constantFrom('TOKEN', 'A_KEY', 'SVC_OAUTH')),
  })
  .chain(({ reference: [id, name], ...common }) =>
    fc.oneof(
      fc.constantFrom(['npx', '-y', 'a-package@1.2.3'], ['a-server'], ['bash', '-c', 'x'], []).map((command) => {
        return { ...common, command, env: { [name]: `x vault://mcp-servers/${id}/${name}` } };
      }),
      fc.constantFrom('https://mcp.example.test/mcp', 'http://127.0.0.1:1/', 'http://a.example.test/').map((url) => {
        return { ...common, mode: 'remote', url, headers: { 'X-Key': `vault://mcp-servers/${id}/${name}` } };
      }),
    ),
  );
/** Install requests for a marketplace entry. */
const serviceAccounts = fc.record({
  name: fc.constantFrom('deploy', 'test'),
  issuer: fc.constant('https://id.example.test'),
  audience: fc.constant('svc'),
  claims: fc.record({ sub: words }),
});
const entryChoice = fc.record(
  { owner: fc.constantFrom('personal', 'enterprise'), name: fc.constantFrom('one', 'two'), dry_run: fc.boolean() },
  { requiredKeys: [] },
);
const httpsUrls = fc.constantFrom('https://a.example.test/x', 'https://b.example.test/a/b', 'http://a.example.test/');
const sinks = fc
  .record({ name: fc.constantFrom('siem', 'archive'), from: fc.constant('now'), url: httpsUrls })
  .chain((common) =>
    fc.oneof(
      fc.constantFrom('webhook', 'slack').map((kind) => ({ ...common, kind })),
      fc.constantFrom('otlp', 'otlp_metrics', 'otlp_traces').map((kind) => {
        return { ...common, kind, header: { name: 'authorization', value: 'Bearer x' } };
      }),
      fc.constantFrom('syslog+tls://logs.example.test', 'syslog+tls://logs.example.test:0').map((url) => {
        return { ...common, kind: 'syslog', url };
      }),
      fc.constantFrom('eu-central-1', 'a b').map((region) => {
        return { ...common, kind: 's3', region, access_key_id: 'AKIAEXAMPLE', secret_access_key: 'a-secret-key' };
      }),
    ),
  );
/** At paths that no other call names: a value would be asked of its provider. */
const sources = fc.record({
  path: fc.constantFrom('sources/a', 'sources/b'),
  owner: fc.constantFrom('personal', 'enterprise'),
  key: fc.constantFrom('a-key', 'two words'),
  source: fc.constantFrom(
    { kind: 'client_credentials', token_url: 'https://id.example.test/token', client_id: 'ci' },
    { kind: 'jwt_bearer', token_url: 'https://id.example.test/token', issuer: 'a', subject: 'b' },
    { kind: 'vault_kv', vault_url: 'https://vault.example.test', secret_path: 'a/b', field: 'c' },
    { kind: 'vault_lease', vault_url: 'https://vault.example.test', lease_path: 'a/creds/b', field: 'c' },
    { kind: 'aws_secrets_manager', access_key_id: 'AKIAEXAMPLE', region: 'eu-central-1', secret_id: 'a' },
    { kind: 'doppler', project: 'a', config: 'b', secret_name: 'C' },
  ),
});
const HINTS = {
  CreateAuditSink: sinks,
  HostBindingInput: binding,
  SecretSourceInput: sources,
  // Of no source: its test would call a provider.
  SecretSourceTest: fc.record({ path: fc.constantFrom('not/there', 'user/none') }),
  ServiceAccountInput: serviceAccounts,
  ServiceAccountChange: serviceAccounts,
  ClientCertificateInput: fc.record(
    {
      host: fc.oneof(hosts, fc.stringMatching(/^[a-z]{8}\.mtls\.test(:8443)?$/)),
      credential_ref: fc.constantFrom('vault://user/demo', 'vault://a'),
      effect: fc.constantFrom('read', 'write'),
      http2: fc.constant(true),
    },
    { requiredKeys: ['host', 'credential_ref'] },
  ),
  TunnelHostInput: fc.record({
    host: fc.oneof(hosts, fc.stringMatching(/^[a-z]{8}\.unbound\.test$/)),
    owner: fc.constantFrom('personal', 'enterprise'),
  }),
  McpServerInput: mcpServer,
  McpRulesReplacement: fc.record(
    {
      sources: fc.constantFrom(null, ['npm:@acme/*', 'host:*.acme.test'], ['nonsense']),
      isolation: fc.constantFrom('process', 'container'),
      pinned_only: fc.boolean(),
      revision: fc.constant('of other rules'),
    },
    { requiredKeys: [] },
  ),
  InstallMarketplaceServer: entryChoice,
  PreviewMarketplaceServer: fc.constant({}),
  PendingLoginInput: fc.record({
    program: fc.constantFrom('claude', 'codex'),
    token_url: fc.constant('https://login.example.test/token'),
    client_id: fc.constantFrom('a-client', 'another client'),
    grants: fc.constantFrom(['authorization_code'], ['device_code', 'authorization_code']),
  }),
  ConnectorSpec: spec,
  ConnectorRun: run.map((fields) => ({ connector_fqn: ITEMS_SPEC.connector.fqn, ...fields })),
  host: fc.constantFrom('a.example.test', 'b.example.test', 'B.example.test'),
  path: paths,
  publisher: fc.constantFrom('io.example.n000001', 'IO.example.n000002', 'com.none'),
  reason: fc.stringMatching(/^[a-z ]{1,40}[a-z]$/),
  type: fc.constantFrom('sandbox.proxy.', 'control.secret.stored', 'nonsense'),
  url: fc.oneof(fc.webUrl({ withQueryParameters: true }), fc.constant('https://a.example.test/x')),
  wait: fc.constant(0),
  x: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
};

beforeAll(async () => {
  registry = await startRegistryServer({ entries: 30 });
  control = await startOnNode({ SVC_REGISTRY_URL: registry.url });
  const headers = { authorization: `Bearer ${control.localKey}` };
  const link = await fetch(`${control.url}/v1/sign-in-links`, { method: 'POST', headers });
  consoleHost = new URL(signInLinkReply.parse(await link.json()).url).host;
  sidecar = await enrolled();
  const hints = {
    ...HINTS,
    connector_id: fc.constant(await installItems()),
    mcp_server_id: fc.constant(await registerServer()),
    registryId: fc.constantFrom(...[1, 2, 3, 4, 5].map((index) => registry.entry(index).server.name), 'no/such'),
  };
  operations = readDocument(await (await fetch(`${control.url}/openapi.json`)).text(), hints);
});
afterAll(async () => {
  await control.stop();
  await registry.stop();
});

/** Installs a connector for which agents may request approvals. */
async function installItems(): Promise<string> {
  const headers = { authorization: `Bearer ${control.localKey}`, 'content-type': 'application/json' };
  const body = JSON.stringify(ITEMS_SPEC);
  const made = await fetch(`${control.url}/v1/connectors`, { method: 'POST', headers, body });
  return installReply.parse(await made.json()).id;
}

/** Registers an MCP server for whose tools agents may request approvals. */
async function registerServer(): Promise<string> {
  const headers = { authorization: `Bearer ${control.localKey}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ name: 'approved', command: ['a-server'], tools: { approval: ['*'] } });
  const made = await fetch(`${control.url}/v1/mcp-servers`, { method: 'POST', headers, body });
  return mcpServerRecord.parse(await made.json()).id;
}

/** A call in its wire form. */
interface WireCall {
  readonly operation: DescribedOperation;
  readonly target: string;
  /** The text of the body; null for none. */
  readonly body: string | null;
  readonly contentType: string;
}
/** How a call is signed. */
type Authorization = (call: WireCall) => Promise<string | null>;

async function enrolled(): Promise<TestSidecar> {
  const made = await TestSidecar.make((path, init) => fetch(control.url + path, init));
  await made.enrol(control.localKey);
  return made;
}

/** A sidecar that leaves makes no further call. */
const asItsCaller: Authorization = async ({ operation, target, body }) => {
  if (operation.access !== 'sidecar') return `Bearer ${control.localKey}`;
  const caller = operation.path === '/v1/sidecar/leave' ? await enrolled() : sidecar;
  return `Bearer ${await caller.token(await caller.claims(operation.method, target, body ?? ''))}`;
};

function targetOf(operation: DescribedOperation, parameters: readonly Parameter[]): string {
  let path = operation.path;
  const query = new URLSearchParams();
  for (const parameter of parameters) {
    if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, segmentOf(parameter.value));
    else query.append(parameter.name, parameter.value);
  }
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}

/** A value as a path segment. A segment of one or two dots is never sent: a client resolves it. */
function segmentOf(value: string): string {
  return encodeURIComponent(value).replace(/^\.{1,2}$/, '...');
}

function validCalls(operation: DescribedOperation): fc.Arbitrary<WireCall> {
  const bodies = operation.body?.map((body) => JSON.stringify(body)) ?? fc.constant(null);
  return fc.tuple(operation.parameters, bodies).map(([parameters, body]) => {
    return { operation, target: targetOf(operation, parameters), body, contentType: 'application/json' };
  });
}

/** Invalid calls: in a parameter, a field, the whole body or its content type. */
function brokenCalls(operation: DescribedOperation): fc.Arbitrary<WireCall> {
  const values = operation.parameters.chain((parameters) =>
    fc.tuple(...parameters.map((each) => brokenText.map((text) => ({ ...each, value: text || '%' })))),
  );
  const more = fc.array(fc.record({ name: brokenText, in: fc.constant('query' as const), value: brokenText }), {
    maxLength: 2,
  });
  const parameters = fc.oneof(
    operation.parameters,
    fc.tuple(values, more).map(([a, b]) => [...a, ...b]),
  );
  const contentTypes = fc.constantFrom('application/json', 'application/json', 'text/plain', 'application/json; x=');
  return fc.tuple(parameters, brokenBodies(operation), contentTypes).map(([given, body, contentType]) => {
    return { operation, target: targetOf(operation, given), body, contentType };
  });
}

const brokenText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }).map((text) => text.toWellFormed()),
  fc.constantFrom('..', '../../v1/me', '-1', '1e9', 'NaN', '\0', 'x'.repeat(2_000), 'sec_00000000000000000000000000'),
);

function brokenBodies(operation: DescribedOperation): fc.Arbitrary<string | null> {
  if (operation.body === null) return fc.constant(null);
  const mutated = fc
    .tuple(operation.body, fc.nat(), fc.jsonValue())
    .map(([body, at, value]) => mutate(body, at, value));
  return fc.oneof(
    mutated.map((body) => JSON.stringify(body)),
    fc.json(),
    fc.string({ unit: 'binary', maxLength: 50 }).map((text) => text.toWellFormed()),
    fc.constantFrom('', 'null', '[]', '{', '{"__proto__":{}}', '['.repeat(10_000), '"\\ud800"'),
  );
}

/** The body with one field removed, added or replaced. */
function mutate(body: unknown, at: number, value: unknown): unknown {
  if (typeof body !== 'object' || body === null) return value;
  const fields = Object.keys(body);
  const field = fields[at % (fields.length + 1)] ?? 'surplus';
  const { [field]: _, ...rest }: Record<string, unknown> = { ...body };
  return at % 2 === 0 ? rest : { ...rest, [field]: value };
}

async function send(call: WireCall, authorization: Authorization): Promise<Response> {
  const signed = await authorization(call);
  const headers = {
    ...(signed !== null && { authorization: signed }),
    ...(call.body !== null && { 'content-type': call.contentType }),
  };
  const sent = { method: call.operation.method, headers, ...(call.body !== null && { body: call.body }) };
  // The sign-in steps are only served under the console's own name.
  if (call.operation.isOfBrowser) return fetchAs(consoleHost, control.url + call.target, sent);
  return fetch(control.url + call.target, { ...sent, redirect: 'manual' });
}

function isPage(reply: Response): boolean {
  return reply.headers.get('content-type')?.startsWith('text/html') === true;
}

/** Expects what holds for every reply. */
async function checkReply(call: WireCall, reply: Response): Promise<void> {
  expect(reply.status).toBeLessThan(500);
  if (reply.status >= 400 && call.operation.isOfBrowser && isPage(reply)) {
    expect(Object.values(ERROR_STATUS)).toContain(reply.status);
    expect(reply.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await reply.text()).not.toMatch(/<script(?! type="module" src="\/assets\/[\w.-]+"><)/);
    return;
  }
  if (reply.status >= 400) {
    const { error } = errorBody.strict().parse(await reply.json());
    expect(reply.status).toBe(ERROR_STATUS[error.code]);
    expect(reply.headers.get('svc-request-id')).toBe(error.request_id);
    expect(error.message.length).toBeLessThan(5_000);
    return;
  }
  const schema = call.operation.success(reply.status);
  expect([reply.status, schema]).not.toEqual([reply.status, undefined]);
  if (schema) expect(schema.safeParse(await reply.json())).toMatchObject({ success: true });
  else await reply.body?.cancel();
}

/** Runs a property for every operation; returns the seen statuses of each. */
async function forEachOperation(
  calls: (operation: DescribedOperation) => fc.Arbitrary<WireCall>,
  check: (call: WireCall) => Promise<number>,
  chosen: (operation: DescribedOperation) => boolean = () => true,
): Promise<Record<string, number[]>> {
  const seen: Record<string, number[]> = {};
  for (const operation of operations.filter((each) => chosen(each))) {
    const statuses = new Set<number>();
    const property = fc.asyncProperty(calls(operation), async (call) => void statuses.add(await check(call)));
    await fc.assert(property, RUNS);
    seen[`${operation.method} ${operation.path}`] = [...statuses].toSorted((a, b) => a - b);
  }
  return seen;
}

async function sendChecked(call: WireCall, authorization: Authorization): Promise<number> {
  const reply = await send(call, authorization);
  await checkReply(call, reply);
  return reply.status;
}

/** A control plane on the machine of a person is no MCP server: these paths do not exist there. */
const isHosted = (path: string) => /^\/(?:mcp$|oauth\/|\.well-known\/oauth-)/.test(path);

/**
 * Operations that cannot succeed here: made-up ids do not exist, codes and passwords are not valid, no provider is configured,
 * no domain is verified, no README is published, nobody is invited to a local control plane or deletes its enterprise or account, no source has a key, and runs have no credential (those of e2e/connectors/run_fuzz.test.ts have one).
 */
const neverSucceeds = (name: string) =>
  name.includes('{id}') ||
  isHosted(name.slice(name.indexOf(' ') + 1)) ||
  name.startsWith('POST /auth/') ||
  /^GET \/auth\/(?:\{provider\}|sso|link|connectors)/.test(name) ||
  ['PUT /v1/enterprise', 'DELETE /v1/enterprise', 'DELETE /v1/me'].includes(name) ||
  /^GET .*\/deletion$/.test(name) ||
  ['POST /v1/invitations', 'POST /v1/shares', 'POST /v1/scim-tokens'].includes(name) ||
  ['POST /v1/join-requests', 'POST /v1/vault-moves/values'].includes(name) ||
  name === 'GET /v1/marketplace/readmes/{registryId}' ||
  name.startsWith('POST /v1/secret-sources') ||
  name === 'POST /v1/connector-operations/run';

test('a valid call gets the described reply, or a refusal', async () => {
  const seen = await forEachOperation(validCalls, (call) => sendChecked(call, asItsCaller));
  expect(Object.keys(seen).length).toBeGreaterThan(20);
  const reached = Object.entries(seen).filter(([, statuses]) => statuses.some((status) => status < 400));
  const expected = Object.keys(seen).filter((name) => !neverSucceeds(name));
  expect(reached.map(([name]) => name)).toEqual(expect.arrayContaining(expected));
});

test('an invalid call gets an error of the common shape', async () => {
  const seen = await forEachOperation(brokenCalls, (call) => sendChecked(call, asItsCaller));
  const withBody = operations.filter(({ body, path }) => body !== null && !isHosted(path));
  for (const { method, path } of withBody) expect(seen[`${method} ${path}`]).toContain(400);
});

const strangers = fc.oneof(
  fc.constantFrom(null, '', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearer a.b.c', `Bearer svc_local_${'A'.repeat(43)}`),
  fc.string({ maxLength: 40 }).map((text) => `Bearer ${text}`),
);

const callsOfStrangers = (operation: DescribedOperation) =>
  fc.tuple(fc.oneof(validCalls(operation), brokenCalls(operation)), strangers);

test('every call without credentials is refused', async () => {
  for (const operation of operations.filter(({ access }) => access !== 'anyone')) {
    const property = fc.asyncProperty(callsOfStrangers(operation), async ([call, stranger]) => {
      expect(await sendChecked(call, async () => stranger)).toBe(401);
    });
    await fc.assert(property, RUNS);
  }
});

const asTheOther: Authorization = (call) => {
  const access = call.operation.access === 'user' ? 'sidecar' : 'user';
  return asItsCaller({ ...call, operation: { ...call.operation, access } });
};

test("a user's key is refused in place of a sidecar's, and the other way round", async () => {
  const seen = await forEachOperation(
    validCalls,
    (call) => sendChecked(call, asTheOther),
    ({ access }) => access !== 'anyone',
  );
  expect(new Set(Object.values(seen).flat())).toEqual(new Set([401]));
});

test('an id of another user, or of nothing, is not found', async () => {
  const seen = await forEachOperation(
    validCalls,
    (call) => sendChecked(call, asItsCaller),
    ({ path, isOfBrowser }) => path.includes('{id}') && !isOfBrowser,
  );
  for (const [name, statuses] of Object.entries(seen)) {
    expect([name, ...statuses.filter((status) => ![400, 404].includes(status))]).toEqual([name]);
    expect([name, statuses]).toEqual([name, expect.arrayContaining([404])]);
  }
});

const isReadOrReplaceOfBinding = ({ method, path }: DescribedOperation) =>
  method !== 'DELETE' && path === '/v1/host-bindings/{id}';

test('an own id is found, and its record fits the description', async () => {
  const headers = { authorization: `Bearer ${control.localKey}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ host: 'own.example.test', scheme: 'bearer', credential_ref: 'vault://a' });
  const made = await fetch(`${control.url}/v1/host-bindings`, { method: 'POST', headers, body });
  const { id } = hostBindingRecord.parse(await made.json());
  const calls = (operation: DescribedOperation) =>
    validCalls(operation).map((call) => ({ ...call, target: call.target.replace(/bnd_\w+/, id) }));
  const seen = await forEachOperation(calls, (call) => sendChecked(call, asItsCaller), isReadOrReplaceOfBinding);
  expect(Object.entries(seen)).toMatchObject([
    ['GET /v1/host-bindings/{id}', [200]],
    ['PUT /v1/host-bindings/{id}', expect.arrayContaining([200])],
  ]);
});

test("after all this the audit log verifies, and the program's log has no fault", async () => {
  const headers = { authorization: `Bearer ${control.localKey}` };
  const verified = await fetch(`${control.url}/v1/audit-events/verify`, { headers });
  expect(await verified.json()).toMatchObject({ ok: true });
  expect(control.output()).not.toContain('"level":"error"');
});
