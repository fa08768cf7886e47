import type { z } from 'zod';
import { GRAPHQL_FIELDS_SOURCE, pathParameters, SAFE_METHODS, type InputType } from '../../model/connector.ts';
import { checkJsonRules, identifyJsonRules } from './json_rule_checks.ts';
import { didYouMean } from '../../model/near_match.ts';

type Fields = Readonly<Record<string, unknown>>;
type Report = (path: readonly PropertyKey[], message: string) => void;

/** Reports problems between the fields of a connector spec: repeated names, and paths and inputs that do not match. */
export function checkConnectorSpec(value: unknown, context: z.core.$RefinementCtx): void {
  const operations = listOf(fieldsOf(value)?.['operations']);
  const report: Report = (path, message) =>
    context.addIssue({ code: 'custom', path: ['operations', ...path], message });
  reportRepeated(operations, (operation) => listOfTexts([operation['name']]), 'name', 'is the name of', report);
  reportRepeated(operations, identitiesOf, 'path', 'is the method and path of', report);
  reportMixed(operations, report);
  operations.forEach((operation, index) =>
    checkOperation(operation, (path, message) => report([index, ...path], message)),
  );
  const reportAt: Report = (path, message) => context.addIssue({ code: 'custom', path: [...path], message });
  checkLogin(fieldsOf(value) ?? {}, operations, reportAt);
  checkRevocation(fieldsOf(fieldsOf(value)?.['credential']) ?? {}, reportAt);
}

/** A token is sent to no other server than the one that issued it, also to be revoked. */
function checkRevocation({ revocation_url: revocation, token_url: token }: Fields, report: Report): void {
  const [revocationUrl, tokenUrl] = [textOf(revocation) ?? '', textOf(token) ?? ''];
  if (revocation === undefined || !URL.canParse(revocationUrl)) return;
  if (URL.canParse(tokenUrl) && new URL(tokenUrl).origin === new URL(revocationUrl).origin) return;
  report(['credential', 'revocation_url'], 'must be on the same server as token_url');
}

/** The login of a program has one operation, the request at its token URL: svc answers it, and sends no credential there. */
function checkLogin(spec: Fields, operations: readonly Fields[], report: Report): void {
  const credential = fieldsOf(spec['credential']);
  if (credential === null || credential['login'] === undefined) return;
  if (credential['kind'] !== 'oauth2') report(['credential', 'kind'], 'must be "oauth2" for the login of a program');
  const tokenUrl = textOf(credential['token_url']) ?? '';
  if (!URL.canParse(tokenUrl)) return report(['credential', 'token_url'], 'is missing: the login of a program has one');
  const { host, pathname, search } = new URL(tokenUrl);
  if (search !== '') report(['credential', 'token_url'], 'has a query: write it without');
  const [only] = operations;
  const isRequest = only?.['method'] === 'POST' && only['path'] === pathname && only['hosts'] === undefined;
  if (operations.length !== 1 || !isRequest || only['approval'] === 'required' || isRuled(only)) {
    report(['operations'], `must be one for the login of a program: POST ${pathname}, without approval`);
  }
  const hosts = listOfTexts(spec['hosts']);
  if (hosts.length !== 1 || hosts[0] !== host) report(['hosts'], `must be ${host}, where the tokens are requested`);
}

function isRuled(operation: Fields): boolean {
  return operation['graphql'] !== undefined || operation['json'] !== undefined;
}

/**
 * The key that must be unique among the spec's operations. Two templates that differ only in segment names are the same
 * path; at a GraphQL endpoint each field of an operation is a key, and rules for the JSON body are a part of it.
 */
function identitiesOf(operation: Fields): readonly string[] {
  const endpoint = endpointOf(operation);
  const selector = fieldsOf(operation['graphql']);
  if (endpoint === null || selector === null)
    return endpoint === null ? [] : [`${endpoint}${identifyJsonRules(operation['json'])}`];
  const fields = selector['fields'] === undefined ? ['*'] : new Set(listOfTexts(selector['fields']));
  return Array.from(fields, (field) => `${endpoint} ${String(selector['type'])} ${field}`);
}

/** Null while method or path is missing. */
function endpointOf(operation: Fields): string | null {
  const [method, path] = [textOf(operation['method']), textOf(operation['path'])];
  if (method === null || path === null) return null;
  const hosts = listOfTexts(operation['hosts']).toSorted().join(' ');
  return `${method} ${path.replaceAll(/\{[^}]*\}/g, '{}')} ${hosts}`;
}

function reportRepeated(
  operations: readonly Fields[],
  keysOf: (operation: Fields) => readonly string[],
  field: string,
  words: string,
  report: Report,
): void {
  const first = new Map<string, number>();
  operations.forEach((operation, index) => {
    const keys = keysOf(operation);
    const earlier = keys.map((key) => first.get(key)).find((at) => at !== undefined);
    for (const key of keys) if (!first.has(key)) first.set(key, index);
    if (earlier === undefined) return;
    report([index, field], `${words} operations[${earlier}] too: one request would be two operations`);
  });
}

/** If one operation inspects the document, a request to another one that does not could not be told apart. */
function reportMixed(operations: readonly Fields[], report: Report): void {
  const graphql = new Set(operations.filter((each) => each['graphql'] !== undefined).map(endpointOf));
  operations.forEach((operation, index) => {
    if (operation['graphql'] !== undefined || !graphql.has(endpointOf(operation))) return;
    report([index, 'graphql'], 'is missing: another operation says that this method and path are a GraphQL endpoint');
  });
}

function checkOperation(operation: Fields, report: Report): void {
  const method = textOf(operation['method']);
  const graphql = fieldsOf(operation['graphql']);
  if (graphql !== null) checkGraphql(operation, graphql, method, report);
  else if (operation['effect'] === 'read' && method !== null && !SAFE_METHODS.includes(method)) {
    report(
      ['effect'],
      `is "read", but ${method} is not a safe method: write "write", "delete", "spend" or "external-send"`,
    );
  }
  checkJsonRules(operation, report);
  checkInputs(operation, method, report);
  checkAudit(operation, report);
}

/** The type of each input that a GraphQL request may have. A run is built from these, and nothing else affects the document. */
const GRAPHQL_INPUTS: ReadonlyMap<string, InputType> = new Map([
  ['query', 'string'],
  ['operationName', 'string'],
  ['variables', 'object'],
]);

function checkGraphql({ effect, inputs }: Fields, { type }: Fields, method: string | null, report: Report): void {
  if (effect === 'read' && type === 'mutation') {
    report(
      ['effect'],
      'is "read", but a mutation changes something: write "write", "delete", "spend" or "external-send"',
    );
  }
  if (method !== null && method !== 'POST' && !(method === 'GET' && type === 'query')) {
    report(['method'], `is ${method}: GraphQL is sent by POST, and queries by GET too`);
  }
  const place = method === 'GET' ? 'query' : 'body';
  const own = listOf(inputs).map((input, index) => ({ input, index, type: input['type'] ?? 'string' }));
  for (const { input, index, type: given } of own.filter((each) => each.input['in'] !== 'path')) {
    const wanted = GRAPHQL_INPUTS.get(textOf(input['name']) ?? '');
    const isWanted = given === wanted || (method === 'GET' && given === 'string');
    if (wanted !== undefined && isWanted && input['in'] === place) continue;
    report(['inputs', index], `must be query or operationName (string) or variables (object), in "${place}"`);
  }
  if (!own.some(({ input }) => input['name'] === 'query' && input['in'] === place && input['required'] === true)) {
    report(['inputs'], `has no required input "query" with in "${place}", which is the document`);
  }
}

function checkInputs(operation: Fields, method: string | null, report: Report): void {
  const inputs = listOf(operation['inputs']);
  const parameters = pathParameters(textOf(operation['path']) ?? '');
  const twice = parameters.find((name, index) => parameters.indexOf(name) !== index);
  if (twice !== undefined) report(['path'], `has {${twice}} twice: each segment has a name of its own`);
  reportRepeatedInputs(inputs, report);
  const named = inputs.filter((input) => input['in'] === 'path').map((input) => textOf(input['name']) ?? '');
  for (const name of parameters.filter((each) => !named.includes(each))) {
    report(['inputs'], `has no input "${name}" with in "path", and the path has {${name}}${didYouMean(name, named)}`);
  }
  inputs.forEach((input, index) =>
    checkInput(input, method, parameters, (path, message) => report(['inputs', index, ...path], message)),
  );
}

function reportRepeatedInputs(inputs: readonly Fields[], report: Report): void {
  const names = inputs.map((input) => textOf(input['name']));
  names.forEach((name, index) => {
    if (name === null || names.indexOf(name) === index) return;
    report(['inputs', index, 'name'], `is the name of another input: args are given by name`);
  });
}

function checkInput(input: Fields, method: string | null, parameters: readonly string[], report: Report): void {
  const [name, place, type] = [textOf(input['name']) ?? '', input['in'], input['type'] ?? 'string'];
  const isBodyMethod = method === 'POST' || method === 'PATCH' || method === 'PUT';
  if (place === 'path') {
    if (!parameters.includes(name)) report(['in'], `is "path", but the path has no {${name}}`);
    if (input['required'] !== true) report(['required'], 'must be true: a path needs every one of its inputs');
    if (type === 'array' || type === 'object') report(['type'], `is "${type}", which cannot be a path segment`);
  }
  if (place === 'body' && method !== null && !isBodyMethod) {
    report(['in'], `is "body", but ${method} sends its args as the query: write "query"`);
  }
  if (place === 'query' && type === 'object') report(['type'], 'is "object", which cannot be in a query');
}

function checkAudit(operation: Fields, report: Report): void {
  const inputs = listOf(operation['inputs']).map((input) => `${String(input['in'])}.${String(input['name'])}`);
  const names = new Set<unknown>();
  listOf(operation['audit']).forEach((field, index) => {
    const source = textOf(field['source']);
    if (names.has(field['name'])) report(['audit', index, 'name'], 'is the name of another audit field');
    names.add(field['name']);
    if (source === null || source === 'status') return;
    if (source === GRAPHQL_FIELDS_SOURCE && operation['graphql'] !== undefined) return;
    if (!inputs.includes(source)) {
      report(['audit', index, 'source'], `names no input of this operation${didYouMean(source, inputs)}`);
    } else if (!source.startsWith('path.') && field['redact'] !== true) {
      report(['audit', index, 'redact'], 'must be true: query and body values are never recorded, only their presence');
    }
  });
}

function fieldsOf(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
}

function listOf(value: unknown): readonly Fields[] {
  if (!Array.isArray(value)) return [];
  return value.map((item: unknown) => fieldsOf(item) ?? {});
}

function listOfTexts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
