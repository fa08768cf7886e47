/**
 * How long one lookup of a request's host takes among 10,000 bindings (design section 12: under 5 us). Prints one JSON
 * line per kind of lookup; exits 1 when one is over the limit. Run with `node bench/resolve.ts`.
 */
import type { HostBinding } from '../shared/model/host_binding.ts';
import { compilePolicy, resolve } from '../shared/resolve/resolve.ts';

const BINDINGS = 10_000;
const LOOKUPS = 1_000_000;
const HOSTS = 4_096;
const LIMIT_MICROSECONDS = 5;

/** Half exact hosts, half wildcards at two depths. */
function bindingNumber(n: number): HostBinding {
  const hosts = [`api${n}.service${n % 97}.example.com`, `*.tenant${n}.example.net`, `*.deep.tenant${n}.example.org`];
  return {
    id: `bnd_${n}`,
    owner: 'personal',
    host: hosts[n % 2 === 0 ? 0 : 1 + (Math.floor(n / 2) % 2)] ?? '',
    credential: { owner: 'personal', path: 'user/demo' },
    injection: { scheme: 'bearer' },
    emit: { mechanism: 'inject' },
    allowedHosts: [],
    body: 'buffer',
  };
}

/** The longest walk uses as many labels as fit into a host name. */
const KINDS: Readonly<Record<string, (n: number) => string>> = {
  exact: (n) => `api${n * 2}.service${(n * 2) % 97}.example.com`,
  wildcard: (n) => `a.b.tenant${n * 4 + 1}.example.net`,
  miss: (n) => `www.unknown${n}.example.edu`,
  longest_miss: (n) => `${'a.'.repeat(110)}x${n}.example.edu`,
};

function measure(kind: string, host: (n: number) => string): number {
  const policy = compilePolicy(Array.from({ length: BINDINGS }, (_, n) => bindingNumber(n)));
  const requests = Array.from({ length: HOSTS }, (_, n) => host(n % (BINDINGS / 4)));
  let found = 0;
  const startMs = performance.now();
  for (let n = 0; n < LOOKUPS; n += 1) {
    const name = requests[n % HOSTS] ?? '';
    if (resolve(policy, { method: 'GET', host: name, path: '/' }).kind === 'binding') found += 1;
  }
  const microseconds = ((performance.now() - startMs) * 1_000) / LOOKUPS;
  const line = {
    kind,
    bindings: BINDINGS,
    lookups: LOOKUPS,
    found,
    microseconds_per_lookup: Number(microseconds.toFixed(3)),
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  return microseconds;
}

const results = Object.entries(KINDS).map(([kind, host]) => measure(kind, host));
process.exitCode = results.every((microseconds) => microseconds < LIMIT_MICROSECONDS) ? 0 : 1;
