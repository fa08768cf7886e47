import type { z } from 'zod';
import { pathParameters, SAFE_METHODS } from '../model/connector.ts';
import { didYouMean } from './near_match.ts';

type Fields = Readonly<Record<string, unknown>>;
type Report = (path: readonly PropertyKey[], message: string) => void;

/** Adds what is wrong between the fields of a connector spec: names that repeat, paths and inputs that do not fit. */
export function checkConnectorSpec(value: unknown, context: z.core.$RefinementCtx): void {
  const operations = listOf(fieldsOf(value)?.['operations']);
  const report: Report = (path, message) =>
    context.addIssue({ code: 'custom', path: ['operations', ...path], message });
  reportRepeated(operations, (operation) => textOf(operation['name']), 'name', 'is the name of', report);
  reportRepeated(operations, identityOf, 'path', 'is the method and path of', report);
  operations.forEach((operation, index) =>
    checkOperation(operation, (path, message) => report([index, ...path], message)),
  );
}

/** Two templates that differ only in the names of their segments are one path. */
function identityOf(operation: Fields): string | null {
  const [method, path] = [textOf(operation['method']), textOf(operation['path'])];
  if (method === null || path === null) return null;
  const hosts = listOfTexts(operation['hosts']).toSorted().join(' ');
  return `${method} ${path.replaceAll(/\{[^}]*\}/g, '{}')} ${hosts}`;
}

function reportRepeated(
  operations: readonly Fields[],
  keyOf: (operation: Fields) => string | null,
  field: string,
  words: string,
  report: Report,
): void {
  const first = new Map<string, number>();
  operations.forEach((operation, index) => {
    const key = keyOf(operation);
    if (key === null) return;
    const earlier = first.get(key);
    if (earlier === undefined) first.set(key, index);
    else report([index, field], `${words} operations[${earlier}] too: one request would be two operations`);
  });
}

function checkOperation(operation: Fields, report: Report): void {
  const method = textOf(operation['method']);
  if (operation['effect'] === 'read' && method !== null && !SAFE_METHODS.includes(method)) {
    report(
      ['effect'],
      `is "read", but ${method} is not a safe method: write "write", "delete", "spend" or "external-send"`,
    );
  }
  checkInputs(operation, method, report);
  checkAudit(operation, report);
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
    if (input['required'] !== true) report(['required'], 'must be true: a path is whole only with each of its inputs');
    if (type === 'array' || type === 'object') report(['type'], `is "${type}", which no path segment can hold`);
  }
  if (place === 'body' && method !== null && !isBodyMethod) {
    report(['in'], `is "body", but ${method} sends its args as the query: write "query"`);
  }
  if (place === 'query' && type === 'object') report(['type'], 'is "object", which no query can hold');
}

function checkAudit(operation: Fields, report: Report): void {
  const inputs = listOf(operation['inputs']).map((input) => `${String(input['in'])}.${String(input['name'])}`);
  const names = new Set<unknown>();
  listOf(operation['audit']).forEach((field, index) => {
    const source = textOf(field['source']);
    if (names.has(field['name'])) report(['audit', index, 'name'], 'is the name of another audit field');
    names.add(field['name']);
    if (source === null || source === 'status') return;
    if (!inputs.includes(source)) {
      report(['audit', index, 'source'], `names no input of this operation${didYouMean(source, inputs)}`);
    } else if (!source.startsWith('path.') && field['redact'] !== true) {
      report(
        ['audit', index, 'redact'],
        'must be true: query and body values are never recorded, only that they were given',
      );
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
