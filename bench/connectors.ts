/**
 * How long it takes to find a request's operation among 1,000 connectors of 50 operations (design section 12: under 5 us).
 * Prints one JSON line per kind of request; exits 1 when one is over the limit. Run with `node bench/connectors.ts`.
 */
import { compileConnectors, evadesConnector, matchOperation } from '../shared/connect/connector_index.ts';
import type { InstalledConnector, Operation } from '../shared/model/connector.ts';

const CONNECTORS = 1_000;
const OPERATIONS = 50;
const LOOKUPS = 500_000;
const LIMIT_MICROSECONDS = 5;

/** On every fifth host some operations need an approval, so the readings of every other path are checked too. */
const GUARDED_HOSTS = 5;

function operationNumber(n: number, approval: Operation['approval']): Operation {
  const paths = [
    `/v1/things${n}`,
    `/v1/things${n}/{id}`,
    `/v1/things${n}/{id}/parts/{part}`,
    `/{tenant}/things${n}/latest`,
  ];
  const method = n % 3 === 0 ? 'POST' : 'GET';
  const path = paths[n % paths.length] ?? '';
  const rest = { summary: '', description: '', approval, effect: 'write', inputs: [], audit: [] } as const;
  return { name: `operation${n}`, method, path, ...rest };
}

/** Ten connectors share a host, like those of one vendor. */
function connectorNumber(n: number): InstalledConnector {
  const isGuarded = Math.floor(n / 10) % GUARDED_HOSTS === 0;
  const operations = Array.from({ length: OPERATIONS }, (_, index) =>
    operationNumber((n % 10) * OPERATIONS + index, isGuarded && index % 3 === 0 ? 'required' : 'none'),
  );
  const spec = {
    fqn: `vendor/connector${n}`,
    version: '1.0.0',
    title: '',
    description: '',
    hosts: [`api${Math.floor(n / 10)}.example.com`],
    credential: { kind: 'api_key', scopes: [] } as const,
    operations,
  };
  const credential = { owner: 'personal', path: `connectors/vendor/connector${n}` } as const;
  return { id: `con_${n}`, owner: 'personal', spec, contentHash: '', credential };
}

const KINDS: Readonly<Record<string, (n: number) => string>> = {
  exact: (n) => `/v1/things${(n * 4) % 500}`,
  template: (n) => `/v1/things${(n * 4 + 2) % 500}/${n}/parts/a-part`,
  miss: (n) => `/v1/nothing${n}/of/this`,
  escaped: (n) => `/v1/things${(n * 4 + 1) % 500}/a%20b%2Fc${n}`,
};

/** All of them on hosts with approvals. */
const GUARDED_KINDS: typeof KINDS = {
  guarded_exact: KINDS['exact'] ?? String,
  guarded_miss: (n) => `/v1/nothing${n}/of/this`,
  guarded_mixed_case: (n) => `/v1/Things${n}/OCTOCAT/parts/Hello.World`,
  guarded_escaped: (n) => `/v1/things${(n * 4 + 1) % 500}/a%20b%2Fc${n}`,
  guarded_unicode: (n) => `/v1/things${(n * 4 + 1) % 500}/%C3%BCber${n}`,
};

const index = compileConnectors(Array.from({ length: CONNECTORS }, (_, n) => connectorNumber(n)));
for (const [kind, pathOf] of Object.entries({ ...KINDS, ...GUARDED_KINDS })) {
  const step = kind in GUARDED_KINDS ? GUARDED_HOSTS : 1;
  const requests = Array.from({ length: 4_096 }, (_, n) => ({
    method: 'GET',
    host: `api${(n * step) % 100}.example.com`,
    path: pathOf(n),
  }));
  let found = 0;
  const startMs = performance.now();
  for (let n = 0; n < LOOKUPS; n += 1) {
    const request = requests[n % requests.length];
    if (request === undefined) continue;
    if (matchOperation(index, request).kind === 'operation') found += 1;
    if (evadesConnector(index, request)) found += 1;
  }
  const microseconds = ((performance.now() - startMs) * 1000) / LOOKUPS;
  process.stdout.write(`${JSON.stringify({ kind, microseconds: Number(microseconds.toFixed(3)), found })}\n`);
  if (microseconds > LIMIT_MICROSECONDS) process.exitCode = 1;
}
