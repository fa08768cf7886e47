import fc from 'fast-check';
import { ITEMS_SPEC } from './connector_samples.ts';

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
/** Values for the fields and schemas whose rules the description cannot express. */
export const HINTS = {
  CreateAuditSink: sinks,
  'If-Match': fc.constantFrom('*', '*', '*', '"1"', '"2026-01-31T12:00:00.000Z"', `"${'0'.repeat(64)}"`),
  HostBindingInput: binding,
  HostBindingReplacement: binding,
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
  McpServerReplacement: mcpServer,
  McpRulesReplacement: fc.record(
    {
      sources: fc.constantFrom(null, ['npm:@acme/*', 'host:*.acme.test'], ['nonsense']),
      isolation: fc.constantFrom('process', 'container'),
      pinned_only: fc.boolean(),
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
