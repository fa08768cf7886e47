import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { signInLinkReply } from '../../shared/wire/account.ts';
import { installReply } from '../../shared/wire/connectors/connectors.ts';
import { hostBindingRecord } from '../../shared/wire/host_binding.ts';
import { mcpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import { type RegistryServer, startRegistryServer } from '../marketplace/registry_server.ts';
import { fetchAs } from '../support/fetch_as.ts';
import { countOf } from '../support/full_counts.ts';
import { brokenCalls, checkReply, validCalls, type WireCall } from './api_calls.ts';
import { type DescribedOperation, readDocument } from './api_document.ts';
import { HINTS } from './api_hints.ts';
import { ITEMS_SPEC } from './connector_samples.ts';
import { type ControlPlaneUnderTest, startOnNode } from './programs.ts';
import { TestSidecar } from './sidecar_client.ts';

/** The same calls in each run; a failure names the shrunk call. */
const RUNS = { seed: 20_260_102, numRuns: countOf(25, 10) };
/** Calls that are refused: fewer of them show it. */
const REFUSED_RUNS = { ...RUNS, numRuns: countOf(25, 4) };
/** Calls that are refused for their signature alone. */
const UNSIGNED_RUNS = { ...RUNS, numRuns: countOf(25, 2) };

let control: ControlPlaneUnderTest;
let consoleHost: string;
let registry: RegistryServer;
let sidecar: TestSidecar;
let operations: readonly DescribedOperation[];

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

async function send(call: WireCall, authorization: Authorization): Promise<Response> {
  const signed = await authorization(call);
  const headers = {
    ...call.headers,
    ...(signed !== null && { authorization: signed }),
    ...(call.body !== null && { 'content-type': call.contentType }),
  };
  const sent = { method: call.operation.method, headers, ...(call.body !== null && { body: call.body }) };
  // The sign-in steps are only served under the console's own name.
  if (call.operation.isOfBrowser) return fetchAs(consoleHost, control.url + call.target, sent);
  return fetch(control.url + call.target, { ...sent, redirect: 'manual' });
}

/** Runs a property for every operation; returns the seen statuses of each. */
async function forEachOperation(
  calls: (operation: DescribedOperation) => fc.Arbitrary<WireCall>,
  check: (call: WireCall) => Promise<number>,
  chosen: (operation: DescribedOperation) => boolean = () => true,
  runs = RUNS,
): Promise<Record<string, number[]>> {
  const seen: Record<string, number[]> = {};
  for (const operation of operations.filter((each) => chosen(each))) {
    const statuses = new Set<number>();
    const property = fc.asyncProperty(calls(operation), async (call) => void statuses.add(await check(call)));
    await fc.assert(property, runs);
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

/** The statuses of valid calls, by operation. */
let replies: Record<string, number[]>;

test('a valid call gets the described reply, or a refusal', async () => {
  const seen = await forEachOperation(validCalls, (call) => sendChecked(call, asItsCaller));
  replies = seen;
  expect(Object.keys(seen).length).toBeGreaterThan(20);
  const reached = Object.entries(seen).filter(([, statuses]) => statuses.some((status) => status < 400));
  const expected = Object.keys(seen).filter((name) => !neverSucceeds(name));
  expect(reached.map(([name]) => name)).toEqual(expect.arrayContaining(expected));
});

test('an invalid call gets an error of the common shape', async () => {
  const seen = await forEachOperation(brokenCalls, (call) => sendChecked(call, asItsCaller), undefined, REFUSED_RUNS);
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
    await fc.assert(property, UNSIGNED_RUNS);
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
    UNSIGNED_RUNS,
  );
  expect(new Set(Object.values(seen).flat())).toEqual(new Set([401]));
});

test('an id of another user, or of nothing, is not found', async () => {
  const withId = operations.filter(({ path, isOfBrowser }) => path.includes('{id}') && !isOfBrowser);
  expect(withId).not.toEqual([]);
  for (const { method, path } of withId) {
    const name = `${method} ${path}`;
    const statuses = replies[name] ?? [];
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
