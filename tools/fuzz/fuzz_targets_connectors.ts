import { parseJson } from '../../shared/model/json.ts';
import { compileConnectors, evadesConnector, matchOperation } from '../../shared/connect/connector_index.ts';
import { buildOperationRequest } from '../../shared/connect/operation_request.ts';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { type ConnectorSpec, operationHosts, pathParameters } from '../../shared/model/connector.ts';
import { isIpLiteral } from '../../shared/net/ip_literal.ts';
import { compilePolicy, resolve } from '../../shared/resolve/resolve.ts';
import { connectorSpec, toConnectorSpec } from '../../shared/wire/connectors/connector_spec.ts';
import { operationsOfOpenApi } from '../../cli/connectors/openapi_operations.ts';
import type { FuzzTarget } from './fuzz_engine.ts';

const HOST = 'api.example.com';
const PATHS = ['/admin/keys', '/user', '/items/{id}', '/items/{id}/tags', '/items/all', '/'];
const INDEX = compileConnectors([
  sampleConnector(
    PATHS.map((path) => sampleOperation({ name: path, path })),
    { hosts: [HOST] },
  ),
]);

/** The path with dot segments applied, empty segments dropped, and no final slash: the form that routers compare. */
function resolvePath(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

/** The same, but empty segments count like others (RFC 3986 section 5.2.4). */
function resolvedUnmerged(path: string): string {
  const kept: string[] = [];
  for (const segment of path.slice(1).split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

const decodeText = (text: string): string =>
  text.replaceAll(/%([0-9a-f]{2})/gi, (_escape, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
const withoutParameters = (path: string): string => path.replaceAll(/;[^/]*/g, '');

/** The ways in which servers read a path before routing. */
const SERVERS: Readonly<Record<string, (path: string) => string>> = {
  'one that only applies dot segments': resolvePath,
  'one that keeps empty segments': (path) => resolvedUnmerged(decodeText(path)),
  'one that decodes first': (path) => resolvePath(decodeText(path)),
  'one that decodes each segment': (path) => resolvePath(path.split('/').map(decodeText).join('/')),
  'one that drops parameters, then decodes': (path) => resolvePath(decodeText(withoutParameters(path))),
  'one that decodes, then drops parameters': (path) => resolvePath(withoutParameters(decodeText(path))),
  'one that takes backslashes for slashes': (path) => resolvePath(decodeText(path).replaceAll('\\', '/')),
};

/** The operation that a server would run: the one whose path has only matching literals, else one with templates. */
const literalOperation = (path: string): string | null =>
  PATHS.find((one) => !one.includes('{') && one === path) ?? null;

function operationOf(path: string): string | null {
  const found = matchOperation(INDEX, { method: 'GET', host: HOST, path });
  return found.kind === 'operation' ? found.match.operation.name : null;
}

/** Every byte that a request line may contain in a path, without the question mark. */
const PATH_BYTES = /^\/[\x21-\x3e\x40-\x7e\x80-\xff]*$/;

const evasions: FuzzTarget = {
  name: 'ways round a connector',
  seeds: ['/admin/keys', '/items/7', '/x/..%2fadmin/keys', '/%61dmin;v=1//keys/', String.raw`/admin%5c.\keys`],
  words: ['/', '//', '/./', '/../', '%2f', '%2F', '%5c', '\\', ';', ';x=1', '%3b', '%61', '%6B', '%2e', '%2e%2e', '%25', '%', '#', 'admin', 'keys', 'items', 'all', 'user'], // prettier-ignore
  check(path) {
    if (!PATH_BYTES.test(path)) return null;
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

const GUARDED = ['/v1/refunds', '/v1/things:batchDelete', '/users/@me', '/api/chat.delete', '/repos/{owner}/{repo}', '/{org}/wipe', '/export.json']; // prettier-ignore
const UNGUARDED = [
  '/v1/{thing}',
  '/v1/refunds/{id}',
  '/api/chat.post',
  '/repos/{owner}/starred',
  '/v1/things',
  '/{any}',
];
const TEMPLATES = [...GUARDED, ...UNGUARDED];
const POLICY = compilePolicy(
  [],
  [
    sampleConnector(
      TEMPLATES.map((path) =>
        sampleOperation({ name: path, path, method: 'POST', approval: GUARDED.includes(path) ? 'required' : 'none' }),
      ),
      { hosts: [HOST] },
    ),
  ],
);

type Step = (text: string) => string;
const asIs: Step = (text) => text;
const LETTERS_AND_DIGITS = /[\p{L}\p{N}]/u;

/** The steps that servers apply to a path, in this order, each with its variants. */
const STEPS: readonly (readonly Step[])[] = [
  [asIs, decodeText, (text) => decodeText(decodeText(text)), (text) => decodeText(decodeText(decodeText(text)))],
  [asIs, (text) => text.replaceAll('\\', '/')],
  [asIs, withoutParameters],
  [asIs, resolvePath],
  [asIs, (text) => text.replace(/^.*?\.php(?=\/)/i, '')],
];
const LAST_STEPS: readonly Step[] = [
  asIs,
  (text) => text.replace(/\.[^.]*$/, ''),
  (text) => text.replace(/(?<!^)\..*$/s, ''),
  (text) =>
    Array.from(text)
      .slice(0, Array.from(text).findLastIndex((one) => LETTERS_AND_DIGITS.test(one)) + 1)
      .join(''),
];

/** Every reading that the steps produce, as segments. */
function slowReadings(path: string): string[][] {
  const paths = STEPS.reduce(
    (texts, ways) => [...new Set(texts.flatMap((text) => ways.map((way) => way(text))))],
    [path],
  );
  const plain = paths.map((text) =>
    text
      .split('/')
      .filter((segment) => segment !== '')
      .map(decodeText),
  );
  return plain.flatMap((segments) =>
    LAST_STEPS.map((way) =>
      [...segments.slice(0, -1), ...segments.slice(-1).map(way)].map((segment) => segment.toLowerCase()),
    ),
  );
}

/** The operation that a server's router picks for the segments: a matching one than which none is more literal. */
function route(segments: readonly string[]): readonly string[] {
  const fitting = TEMPLATES.filter((template) => {
    const names = template.slice(1).toLowerCase().split('/');
    return names.length === segments.length && names.every((name, at) => name.startsWith('{') || name === segments[at]);
  });
  return fitting.filter((one) => !fitting.some((other) => other !== one && isMoreLiteral(other, one)));
}

/** `one` is literal wherever `other` is. */
function isMoreLiteral(one: string, other: string): boolean {
  const [names, others] = [one.split('/'), other.split('/')];
  return (
    names.length === others.length &&
    others.every((name, at) => name.startsWith('{') || !(names[at] ?? '{').startsWith('{'))
  );
}

const unapproved: FuzzTarget = {
  name: 'ways round an approval',
  seeds: [
    '/v1/Refunds',
    '/v1/things%3AbatchDelete',
    '/users/%40me',
    '/api/chat.delete.json',
    '/repos/a%2Fb/starred;x',
    '/v1/%2552efunds%20',
    '/x/..%252fv1/refunds',
    '/index.php/org/WIPE',
  ],
  words: ['/', '//', '/./', '/../', '%2f', '%252F', '%5c', '\\', ';', ';x=1', '%3b', '%253b', '%2e', '%2e%2e', '%252e', '%25', '%', '#', '%23', '%3f', '%00', '%0a', '%20', '.', '.json', '.xml', '.php/', ':', '%3A', '@', '%40', 'v1', 'V1', 'refunds', 'REFUNDS', 'things:batchDelete', 'users', 'me', 'api', 'chat.delete', 'repos', 'starred', 'wipe', '%C5%BF', '\xe9', '+', '~', '()'], // prettier-ignore
  check(path) {
    if (!PATH_BYTES.test(path)) return null;
    const taken = resolve(POLICY, { method: 'POST', host: HOST, path });
    if (TEMPLATES.includes(path) && !path.includes('{') && taken.kind !== 'connector') return `is ${taken.kind}`;
    if (taken.kind === 'ambiguous_target') return null;
    const raw = taken.kind === 'connector' ? taken.match.operation.name : null;
    for (const segments of slowReadings(path)) {
      const run = route(segments).find((template) => GUARDED.includes(template) && template !== raw);
      if (run !== undefined && (raw === null || !isMoreLiteral(raw, run)))
        return `passes as ${raw}, but ${segments.join('/')} runs ${run}`;
    }
    return null;
  },
};

const SPEC = {
  schema_version: 1,
  connector: { fqn: 'a/b', version: '1', title: 'T' },
  hosts: ['api.example.com'],
  credential: { kind: 'oauth2', token_url: 'https://auth.example.com/token', scopes: ['read'] },
  operations: [
    {
      name: 'get',
      method: 'GET',
      path: '/items/{id}/all',
      effect: 'read',
      hosts: ['eu.example.com'],
      inputs: [
        { name: 'id', in: 'path', required: true },
        { name: 'q', in: 'query', type: 'array' },
      ],
      audit: [{ name: 'item', source: 'path.id' }],
    },
    {
      name: 'put',
      method: 'PUT',
      path: '/items',
      effect: 'write',
      inputs: [{ name: 'n', in: 'body', type: 'object' }],
    },
  ],
};

/** What must hold for every accepted spec, checked again with simple rules. */
function specProblem({ hosts, operations, credential }: ConnectorSpec): string | null {
  const all = [...hosts, ...operations.flatMap((operation) => operation.hosts ?? [])];
  const bad = all.find((host) => !/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/.test(host) || isIpLiteral(host));
  if (bad !== undefined) return `takes ${JSON.stringify(bad)} for a host`;
  const urls = [credential.tokenUrl, credential.authorizationUrl, credential.deviceAuthorizationUrl];
  const url = urls.find((each) => each !== undefined && new URL(each).origin !== `https://${new URL(each).hostname}`);
  if (url !== undefined) return `takes ${JSON.stringify(url)} for a URL of a provider`;
  const names = operations.map(({ name }) => name);
  if (new Set(names).size < names.length) return 'takes two operations of one name';
  for (const { method, path, effect, inputs, audit } of operations) {
    if (effect === 'read' && !['GET', 'HEAD'].includes(method)) return `takes ${method} for a read`;
    const given = inputs.filter((input) => input.in === 'path').map(({ name }) => name);
    if (pathParameters(path).toSorted().join() !== given.toSorted().join()) return `leaves a hole in ${path}`;
    const open = audit.find(({ source, redact }) => !redact && source !== 'status' && !source.startsWith('path.'));
    if (open !== undefined) return `records ${open.source} in clear`;
  }
  return null;
}

const ARGS: Readonly<Record<string, unknown>> = {
  string: 'a b/c',
  integer: 7,
  number: 0.5,
  boolean: true,
  array: ['x'],
  object: {},
};

/** Each operation of a spec can be run, is sent to one of its own hosts, and is recognised from the sent request. */
function runProblem(spec: ConnectorSpec): string | null {
  const connector = { ...sampleConnector([]), spec };
  const index = compileConnectors([connector]);
  for (const operation of spec.operations) {
    const args = Object.fromEntries(operation.inputs.map(({ name, type }) => [name, ARGS[type]]));
    const built = buildOperationRequest(connector, operation, args);
    if (!built.ok) return `${operation.name} refuses args of its own types: ${JSON.stringify(built.error)}`;
    const { host, path } = built.value;
    if (!operationHosts(spec, operation).includes(host)) return `${operation.name} is sent to ${host}`;
    if (path.split('/').length !== operation.path.split('/').length) return `${operation.name} is sent as ${path}`;
    if (matchOperation(index, built.value).kind === 'none') return `${operation.name} is not found as ${path}`;
  }
  return null;
}

const specs: FuzzTarget = {
  name: 'connector specs',
  seeds: [
    JSON.stringify(SPEC),
    JSON.stringify({ ...SPEC, credential: { kind: 'api_key' } }),
    JSON.stringify({ ...SPEC, operations: SPEC.operations.slice(1) }),
  ],
  words: ['{id}', '{', '}', '/', '//', '..', '%2e', '%2F', '*', '*.', '127.1', '0x7f', '[::1]', ':443', '"', ',', 'null', '1e9', '[]', '{}', '"required":true', '"in":"path"', '"in":"body"', 'GET', 'HEAD', 'POST', 'DELETE', 'read', 'write', 'https://', 'http://', '@', '#', '__proto__', '\\u202e', 'path.id', 'query.q', 'status', '"redact":false'], // prettier-ignore
  check(text) {
    const value = parseJson(text);
    if (value === undefined) return null;
    const read = connectorSpec.safeParse(value);
    if (!read.success)
      return read.error.issues.every(({ message }) => message !== '') ? null : 'is refused without a word';
    if (JSON.stringify(connectorSpec.parse(read.data)) !== JSON.stringify(read.data))
      return 'changes when it is read again';
    const spec = toConnectorSpec(read.data);
    return specProblem(spec) ?? runProblem(spec);
  },
};

const OPENAPI = {
  openapi: '3.1.0',
  servers: [{ url: 'https://api.example.com/v2' }],
  paths: {
    '/items/{id}': {
      parameters: [{ name: 'id', in: 'path', schema: { type: 'integer' } }],
      get: {
        operationId: 'items/get',
        summary: 'Get',
        parameters: [{ name: 'q', in: 'query', schema: { type: 'array' } }],
      },
      patch: {
        requestBody: {
          content: {
            'application/json': {
              schema: { allOf: [{ properties: { t: { type: ['string', 'null'] } }, required: ['t'] }] },
            },
          },
        },
      },
    },
    '/files/{a}.{b}': { get: {} },
  },
};

const openApis: FuzzTarget = {
  name: 'operations of OpenAPI documents',
  seeds: [JSON.stringify(OPENAPI), JSON.stringify({ ...OPENAPI, servers: [] })],
  words: ['{id}', '{', '}', '/', '"', 'null', '[]', '{}', 'allOf', 'oneOf', 'properties', 'required', 'type', 'header', 'cookie', 'query', 'path', 'body', '$ref', '#/', 'application/json', '*/*', 'https://', ':8443', '..', '\\u202e', '\\ud800', '__proto__', 'get', 'head', 'delete', 'trace', '-', 'ü'], // prettier-ignore
  check(text) {
    const value = parseJson(text);
    if (value === undefined) return null;
    let asked = 0;
    const { operations, skipped } = operationsOfOpenApi(value, () => (asked += 1) > 0);
    return operations.length + skipped.length === asked ? null : 'leaves an operation out without a word';
  },
};

export const CONNECTOR_TARGETS: readonly FuzzTarget[] = [evasions, unapproved, specs, openApis];
