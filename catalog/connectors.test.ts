import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { recogniseGraphql } from '../shared/connect/graphql_operation.ts';
import { buildOperationRequest, type OperationRequestParts } from '../shared/connect/operation_request.ts';
import { confirmOperation } from '../shared/connect/confirm_operation.ts';
import { compileConnectors, evadesConnector } from '../shared/connect/connector_index.ts';
import {
  connectorVaultPath,
  operationHosts,
  sendsBody,
  type GraphqlSelector,
  type InputType,
  type InstalledConnector,
  type Operation,
} from '../shared/model/connector.ts';
import { connectorSpec, toConnectorSpec } from '../shared/wire/connectors/connector_spec.ts';

const folder = new URL('connectors/', import.meta.url);
const files = readdirSync(folder);

/** A value of each type that needs escaping in every place. */
const SAMPLES: Readonly<Record<InputType, unknown>> = {
  string: 'a b/ü?&=',
  integer: 7,
  number: 0.5,
  boolean: true,
  array: ['x', 'y'],
  object: { name: 'x' },
};

function read(file: string): unknown {
  return parse(readFileSync(new URL(file, folder), 'utf8'));
}

const installed = new Map<string, InstalledConnector>();

function installedConnector(file: string): InstalledConnector {
  const made = installed.get(file) ?? install(file);
  installed.set(file, made);
  return made;
}

function install(file: string): InstalledConnector {
  const spec = toConnectorSpec(connectorSpec.parse(read(file)));
  const credential = { owner: 'personal', path: connectorVaultPath(spec.fqn) } as const;
  return { id: `con_${file}`, owner: 'personal', spec, contentHash: '0'.repeat(64), credential };
}

function sampleArgs({ inputs, graphql }: Operation): Record<string, unknown> {
  const args = Object.fromEntries(inputs.map(({ name, type }) => [name, SAMPLES[type]]));
  if (graphql === undefined) return args;
  return { ...args, query: sampleDocument(graphql), ...('operationName' in args && { operationName: 'Sample' }) };
}

function sampleDocument({ type, fields = ['viewer'] }: GraphqlSelector): string {
  return `${type} Sample { ${fields.slice(0, 3).join(' ')} }`;
}

describe.each(files)('connector %s', (file) => {
  test('is a valid spec, named after its file', () => {
    const checked = connectorSpec.safeParse(read(file));
    expect(checked.error?.issues).toBeUndefined();
    expect(`${checked.data?.connector.fqn}.yaml`).toBe(`catalog/${file}`);
  });

  test('links the documentation of its operations', () => {
    expect(installedConnector(file).spec.description).toMatch(/^Source: .+, https:\/\/\S+/m);
  });

  test('describes each operation', () => {
    expect(installedConnector(file).spec.operations.filter(({ summary }) => summary === '')).toEqual([]);
  });

  test('requires an approval for each operation that deletes', () => {
    const operations = installedConnector(file).spec.operations.filter(({ effect }) => effect === 'delete');
    expect(operations.filter(({ approval }) => approval !== 'required')).toEqual([]);
  });

  test('requires no approval for operations that only read', () => {
    const operations = installedConnector(file).spec.operations.filter(({ effect }) => effect === 'read');
    expect(operations.filter(({ approval }) => approval === 'required')).toEqual([]);
  });
});

describe('every operation of the catalog, with all connectors installed', () => {
  const connectors = files.map(installedConnector);
  const index = compileConnectors(connectors);
  const operations = connectors.flatMap((connector) =>
    connector.spec.operations.map((operation) => [connector.spec.fqn, operation.name, connector, operation] as const),
  );

  test.each(operations)(
    '%s %s is recognised from the request that a run makes',
    (_fqn, _name, connector, operation) => {
      for (const host of operationHosts(connector.spec, operation)) {
        const request = buildOperationRequest(connector, operation, sampleArgs(operation), host);
        if (!request.ok) throw new Error(JSON.stringify(request.error));
        expect(request.value.method).toBe(operation.method);
        expect(request.value.body === null).toBe(!sendsBody(operation.method));
        expect(confirmOperation(index, { connector, operation }, request.value)).toMatchObject({
          value: { connector, operation },
        });
        expect(evadesConnector(index, request.value)).toBe(false);
      }
    },
  );

  test('sends its server every arg in the place that its input names', () => {
    for (const [, , connector, operation] of operations) {
      const args = sampleArgs(operation);
      const request = buildOperationRequest(connector, operation, args);
      if (!request.ok) throw new Error(JSON.stringify(request.error));
      expect(asServed(operation, request.value)).toEqual({
        path: {},
        query: {},
        body: {},
        ...groupByPlace(operation, args),
      });
    }
  });
});

/** The args by the place that their inputs name, as text if a request has only text there. */
function groupByPlace(operation: Operation, args: Readonly<Record<string, unknown>>): Record<string, object> {
  const places = Map.groupBy(operation.inputs, (input) => input.in);
  return Object.fromEntries(
    Array.from(places, ([place, inputs]) => [
      place,
      Object.fromEntries(
        inputs.map(({ name }) => [name, place === 'body' ? args[name] : [args[name]].flat().map(String)]),
      ),
    ]),
  );
}

/** What a server reads from a request: the path segments of the template's names, the query, and the JSON body. */
function asServed(operation: Operation, request: OperationRequestParts): Record<string, object> {
  const segments = request.path.split('/').map(decodeURIComponent);
  const names = operation.path.split('/').map((segment) => /^\{(.*)\}$/.exec(segment)?.[1]);
  const path = names.flatMap((name, at) => (name === undefined ? [] : [[name, [segments[at]]]]));
  const query = new URLSearchParams(request.query ?? '');
  const body: unknown = JSON.parse(request.body ?? '{}');
  return {
    path: Object.fromEntries(path),
    query: Object.fromEntries([...new Set(query.keys())].map((name) => [name, query.getAll(name)])),
    body: Object(body),
  };
}

test('no two connectors share a name or a title', () => {
  const specs = files.map((file) => installedConnector(file).spec);
  for (const names of [specs.map(({ fqn }) => fqn), specs.map(({ title }) => title)]) {
    expect(names).toEqual([...new Set(names)]);
  }
});

/** A package registry publishes to everybody: that needs a binding that says so. */
test('none reaches a package registry', () => {
  const hosts = files.flatMap((file) => installedConnector(file).spec.hosts);
  expect(hosts.filter((host) => /npm|pypi|registry|docker|crates|rubygems|nuget|maven/.test(host))).toEqual([]);
});

test.each([
  ['github', 'merge-pull'],
  ['github', 'delete-repo'],
  ['gitlab', 'merge'],
  ['slack', 'delete-message'],
  ['stripe', 'create-refund'],
  ['stripe', 'create-payout'],
  ['vercel', 'buy-domain'],
  ['cloudflare', 'update-dns-record'],
  ['google-calendar', 'share-calendar'],
  ['linear', 'delete'],
])('%s %s needs an approval', (name, operation) => {
  const found = installedConnector(`${name}.yaml`).spec.operations.find((each) => each.name === operation);
  expect(found?.approval).toBe('required');
});

/** The names of a connector's operations that accept a document. */
function operationsTaking(name: string, document: string): readonly string[] {
  const connector = installedConnector(`${name}.yaml`);
  const operations = connector.spec.operations.filter(({ graphql }) => graphql !== undefined);
  const candidates = operations.map((operation) => ({ connector, operation }));
  const body = new TextEncoder().encode(JSON.stringify({ query: document }));
  const found = recogniseGraphql(candidates, { method: 'POST', query: null }, [body]);
  return found.ok ? [found.value.operation.name, found.value.operation.approval] : [];
}

test.each([
  ['github', '{ viewer { login } }', ['graphql-query', 'none']],
  ['github', 'mutation { addComment { subject { id } } }', ['graphql-change', 'none']],
  ['github', 'mutation { mergePullRequest { pullRequest { id } } }', ['graphql-merge', 'required']],
  ['github', 'mutation { a: addComment { id } b: mergePullRequest { id } }', []],
  ['github', 'mutation { updateRepository { repository { id } } }', ['graphql-mutation', 'required']],
  ['gitlab', '{ currentUser { id } }', ['graphql-query', 'none']],
  ['gitlab', 'mutation { mergeRequestAccept { errors } }', ['graphql-merge', 'required']],
  ['gitlab', 'mutation { createNote { errors } }', ['graphql-mutation', 'required']],
  ['linear', '{ viewer { id } }', ['query', 'none']],
  ['linear', 'mutation { issueCreate { success } }', ['change', 'none']],
  ['linear', 'mutation { issueDelete { success } }', ['delete', 'required']],
  ['linear', 'mutation { apiKeyCreate { success } }', ['mutation', 'required']],
  ['cloudflare', '{ viewer { zones { zoneTag } } }', ['query-analytics', 'none']],
  ['cloudflare', 'mutation { anything }', []],
  ['github', 'subscription { anything }', []],
])('%s: %s is %j', (name, document, taken) => {
  expect(operationsTaking(name, document)).toEqual(taken);
});

test('slack: an operation that needs an approval by POST also needs it by GET, because Slack accepts both', () => {
  const guarded = installedConnector('slack.yaml').spec.operations.filter(({ approval }) => approval === 'required');
  const pathsOf = (method: string): string[] =>
    guarded.filter((each) => each.method === method).map(({ path }) => path);
  expect(pathsOf('POST')).toHaveLength(3);
  expect(pathsOf('GET')).toEqual(pathsOf('POST'));
});

test.each([
  ['oauth2', ['google-calendar', 'jira', 'linear']],
  ['api_key', ['asana', 'cloudflare', 'github', 'gitlab', 'openai', 'sentry', 'slack', 'stripe', 'vercel']],
])('has connectors with a credential of kind %s', (kind, names) => {
  const found = files.filter((file) => installedConnector(file).spec.credential.kind === kind);
  expect(found).toEqual(names.map((name) => `${name}.yaml`));
});

test('a connector with an oauth2 credential names its authorisation URLs and scopes', () => {
  const oauth2 = files.map((file) => installedConnector(file).spec.credential).filter(({ kind }) => kind === 'oauth2');
  expect(oauth2.filter(({ authorizationUrl, tokenUrl }) => !authorizationUrl || !tokenUrl)).toEqual([]);
  expect(oauth2.filter(({ scopes }) => scopes.length === 0)).toEqual([]);
});

test('the guide lists every connector with the kind of its credential', () => {
  const guide = readFileSync(new URL('../docs/connectors.md', import.meta.url), 'utf8');
  const rows = Array.from(guide.matchAll(/^\| `([a-z-]+)` +\|[^|]+\| (API key|OAuth 2\.0) +\|/gm), ([, name, kind]) => [
    name,
    kind,
  ]);
  const kinds = { api_key: 'API key', oauth2: 'OAuth 2.0' };
  expect(rows).toEqual(
    files.map((file) => [file.replace('.yaml', ''), kinds[installedConnector(file).spec.credential.kind]]),
  );
});
