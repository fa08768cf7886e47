import { compileConnectors, matchOperation } from '../../shared/connect/connector_index.ts';
import type { InstalledConnector, Operation } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { compilePolicy, resolve } from '../../shared/resolve/resolve.ts';
import type { Cost, Grown, Step } from './growth.ts';

const SIZES = [10, 100, 1_000, 10_000, 100_000];
const LOOKUPS = 200_000;
const OPERATIONS_OF_A_CONNECTOR = 50;

/** Half exact hosts, half wildcards. */
function bindingNumber(n: number): HostBinding {
  return {
    id: `bnd_${n}`,
    owner: 'personal',
    host: n % 2 === 0 ? `api${n}.example.com` : `*.tenant${n}.example.net`,
    credential: { owner: 'personal', path: 'user/demo' },
    injection: { scheme: 'bearer' },
    emit: { mechanism: 'inject' },
    allowedHosts: [],
    body: 'buffer',
  };
}

function operationNumber(n: number): Operation {
  const rest = { summary: '', description: '', approval: 'none', effect: 'write', inputs: [], audit: [] } as const;
  return { name: `operation${n}`, method: 'GET', path: `/v1/things${n}/{id}`, ...rest };
}

function connectorNumber(n: number): InstalledConnector {
  const spec = {
    fqn: `vendor/connector${n}`,
    version: '1.0.0',
    title: '',
    description: '',
    hosts: [`api${n}.example.com`],
    credential: { kind: 'api_key', scopes: [] } as const,
    operations: Array.from({ length: OPERATIONS_OF_A_CONNECTOR }, (_, index) => operationNumber(index)),
  };
  const credential = { owner: 'personal', path: `connectors/vendor/connector${n}` } as const;
  return { id: `con_${n}`, owner: 'personal', spec, contentHash: '', credential };
}

/** Milliseconds of CPU. */
function cpuOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** What the sidecar does with a policy: it is compiled at each change, and looked up at each request. */
export async function growBindings(): Promise<Grown> {
  const steps: Record<string, Step[]> = {};
  const note = (name: string, size: number, cost: number) => (steps[name] ??= []).push({ size, cost });
  for (const size of SIZES) {
    const bindings = Array.from({ length: size }, (_, n) => bindingNumber(n));
    let policy = compilePolicy(bindings);
    note(
      'compile',
      size,
      cpuOf(() => (policy = compilePolicy(bindings))),
    );
    const lookUp = (hostOf: (n: number) => string) => {
      const hosts = Array.from({ length: 1_024 }, (_, n) => hostOf(Math.floor((n / 1_024) * size)));
      const milliseconds = cpuOf(() => {
        for (let n = 0; n < LOOKUPS; n += 1) {
          resolve(policy, { method: 'GET', host: hosts[n % hosts.length] ?? '', path: '/' });
        }
      });
      return (milliseconds * 1_000) / LOOKUPS;
    };
    note(
      'exact',
      size,
      lookUp((n) => `api${n - (n % 2)}.example.com`),
    );
    note(
      'wildcard',
      size,
      lookUp((n) => `a.tenant${n - (n % 2) + 1}.example.net`),
    );
    note(
      'miss',
      size,
      lookUp((n) => `www.unknown${n}.example.edu`),
    );
    noteOperations(size, note);
  }
  const cost = (key: string, name: string, unit: string, bound: Cost['bound']): Cost => {
    return { name, unit, bound, steps: steps[key] ?? [] };
  };
  return {
    title: 'Policy in the sidecar',
    amount: 'bindings, or operations',
    costs: [
      cost('compile', 'compiling the bindings', 'ms', 'n log n'),
      cost('exact', 'the binding of a host', 'us', 'log n'),
      cost('wildcard', 'the binding of a wildcard', 'us', 'log n'),
      cost('miss', 'no binding', 'us', 'log n'),
      cost('compile operations', 'compiling the operations', 'ms', 'n log n'),
      cost('operation', 'the operation of a request', 'us', 'log n'),
    ],
  };
}

function noteOperations(size: number, note: (name: string, size: number, cost: number) => void): void {
  const count = Math.max(1, Math.floor(size / OPERATIONS_OF_A_CONNECTOR));
  const connectors = Array.from({ length: count }, (_, n) => connectorNumber(n));
  let index = compileConnectors(connectors);
  note(
    'compile operations',
    size,
    cpuOf(() => (index = compileConnectors(connectors))),
  );
  const requests = Array.from({ length: 1_024 }, (_, n) => ({
    method: 'GET',
    host: `api${n % count}.example.com`,
    path: `/v1/things${n % OPERATIONS_OF_A_CONNECTOR}/${n}`,
  }));
  const milliseconds = cpuOf(() => {
    for (let n = 0; n < LOOKUPS; n += 1) {
      const request = requests[n % requests.length];
      if (request !== undefined) matchOperation(index, request);
    }
  });
  note('operation', size, (milliseconds * 1_000) / LOOKUPS);
}
