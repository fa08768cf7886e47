import { compileConnectors, evadesConnector, matchOperation } from '../shared/connect/connector_index.ts';
import { sampleConnector, sampleOperation } from '../shared/connect/testing/sample_connector.ts';
import type { FuzzTarget } from './fuzz_engine.ts';

const HOST = 'api.example.com';
const PATHS = ['/admin/keys', '/user', '/items/{id}', '/items/{id}/tags', '/items/all', '/'];
const INDEX = compileConnectors([
  sampleConnector(
    PATHS.map((path) => sampleOperation({ name: path, path })),
    { hosts: [HOST] },
  ),
]);

/** The path with dot segments applied, empty ones dropped, and no last slash: what routers compare. */
function resolved(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

/** The same, with empty segments counted as any other (RFC 3986 section 5.2.4). */
function resolvedUnmerged(path: string): string {
  const kept: string[] = [];
  for (const segment of path.slice(1).split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

const decoded = (text: string): string =>
  text.replaceAll(/%([0-9a-f]{2})/gi, (_escape, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
const withoutParameters = (path: string): string => path.replaceAll(/;[^/]*/g, '');

/** How servers read a path before they route it. */
const SERVERS: Readonly<Record<string, (path: string) => string>> = {
  'one that only applies dot segments': resolved,
  'one that keeps empty segments': (path) => resolvedUnmerged(decoded(path)),
  'one that decodes first': (path) => resolved(decoded(path)),
  'one that decodes each segment': (path) => resolved(path.split('/').map(decoded).join('/')),
  'one that drops parameters, then decodes': (path) => resolved(decoded(withoutParameters(path))),
  'one that decodes, then drops parameters': (path) => resolved(withoutParameters(decoded(path))),
  'one that takes backslashes for slashes': (path) => resolved(decoded(path).replaceAll('\\', '/')),
};

/** The operation whose path has only literals that a server would run; the others take any value. */
const literalOperation = (path: string): string | null =>
  PATHS.find((one) => !one.includes('{') && one === path) ?? null;

function operationOf(path: string): string | null {
  const found = matchOperation(INDEX, { method: 'GET', host: HOST, path });
  return found.kind === 'operation' ? found.match.operation.name : null;
}

const evasions: FuzzTarget = {
  name: 'ways round a connector',
  seeds: ['/admin/keys', '/items/7', '/x/..%2fadmin/keys', '/%61dmin;v=1//keys/', String.raw`/admin%5c.\keys`],
  words: ['/', '//', '/./', '/../', '%2f', '%2F', '%5c', '\\', ';', ';x=1', '%3b', '%61', '%6B', '%2e', '%2e%2e', '%25', '%', '#', 'admin', 'keys', 'items', 'all', 'user'], // prettier-ignore
  check(path) {
    // A request line has no other characters, and a path no question mark.
    if (!/^\/[\x21-\x3e\x40-\x7e]*$/.test(path)) return null;
    const raw = operationOf(path);
    const request = { method: 'GET', host: HOST, path };
    if (PATHS.includes(path) && raw !== path) return `is ${raw}, not its own operation`;
    if (evadesConnector(INDEX, request)) return null;
    for (const [server, read] of Object.entries(SERVERS)) {
      const run = literalOperation(read(path));
      if (run !== null && run !== raw) return `passes as ${raw}, but ${server} runs ${run}`;
    }
    return null;
  },
};

export const CONNECTOR_TARGETS: readonly FuzzTarget[] = [evasions];
