import {
  INPUT_TYPES,
  OPERATION_METHODS,
  pathParameters,
  sendsBody,
  type OperationMethod,
} from '../../shared/model/connector.ts';
import type { ConnectorSpecInput } from '../../shared/wire/connectors/connector_spec.ts';
import { replaceHidden } from '../../shared/model/shown_text.ts';

type OperationDraft = ConnectorSpecInput['operations'][number];
type InputDraft = NonNullable<OperationDraft['inputs']>[number];
type Fields = Readonly<Record<string, unknown>>;

/** The result of converting an OpenAPI document: the operations that a spec can express, and for each of the others the reason why not. */
export interface OpenApiOperations {
  readonly hosts: readonly string[];
  readonly title: string;
  readonly version: string;
  readonly operations: readonly OperationDraft[];
  readonly skipped: readonly { readonly operation: string; readonly reason: string }[];
  /** Parts of an operation that the spec omits, such as header parameters. */
  readonly notes: readonly string[];
}

const MAX_SUMMARY = 200;
const MAX_DESCRIPTION = 2_000;

/**
 * Converts the operations of a dereferenced OpenAPI 3 document that `selected` names, by operation id or as `GET /path`.
 * Nothing is guessed: an operation that a spec cannot express is skipped with the reason.
 */
export function operationsOfOpenApi(document: unknown, selected: (operation: string) => boolean): OpenApiOperations {
  const root = fieldsOf(document);
  const server = serverOf(root);
  const info = fieldsOf(root['info']);
  const operations: OperationDraft[] = [];
  const skipped: { operation: string; reason: string }[] = [];
  const notes: string[] = [];
  for (const found of listDeclaredOperations(root)) {
    if (!selected(found.id) && !selected(`${found.method} ${found.path}`)) continue;
    const made = toOperation(found, server.basePath);
    notes.push(...made.notes.map((note) => `${found.id}: ${note}`));
    if (made.operation === null) skipped.push({ operation: found.id, reason: made.reason });
    else operations.push(made.operation);
  }
  return {
    hosts: server.hosts,
    title: textOf(info['title']),
    version: textOf(info['version']),
    operations,
    skipped,
    notes,
  };
}

interface DeclaredOperation {
  readonly id: string;
  readonly method: OperationMethod;
  readonly path: string;
  readonly operation: Fields;
  readonly parameters: readonly Fields[];
}

function listDeclaredOperations(root: Fields): readonly DeclaredOperation[] {
  return Object.entries(fieldsOf(root['paths'])).flatMap(([path, item]) => {
    const shared = fieldsOf(item);
    return OPERATION_METHODS.flatMap((method) => {
      const operation = shared[method.toLowerCase()];
      if (typeof operation !== 'object' || operation === null) return [];
      const own = fieldsOf(operation);
      const parameters = mergeParameters(listOf(shared['parameters']), listOf(own['parameters']));
      return [{ id: nameOf(textOf(own['operationId']), method, path), method, path, operation: own, parameters }];
    });
  });
}

/** A parameter of the operation overrides the path's parameter with the same name and location (OpenAPI 3.1 section 4.8.9). */
function mergeParameters(shared: readonly Fields[], own: readonly Fields[]): readonly Fields[] {
  const key = (parameter: Fields): string => `${String(parameter['in'])} ${String(parameter['name'])}`;
  return [...new Map([...shared, ...own].map((parameter) => [key(parameter), parameter])).values()];
}

/** Turns an operation id such as `repos/list-tags` into a name; without an id, the name comes from the method and path. */
function nameOf(operationId: string, method: string, path: string): string {
  const text = operationId === '' ? `${method.toLowerCase()}${path}` : operationId;
  return text
    .replaceAll(/[{}]/g, '')
    .replaceAll(/[^A-Za-z0-9_.-]+/g, '-')
    .replaceAll(/^[^A-Za-z0-9_]+|-+$/g, '')
    .slice(0, 128);
}

interface Server {
  readonly hosts: readonly string[];
  /** Removes a trailing slash. */
  readonly basePath: string;
}

/** The first https server without variables; its path is prepended to the path of every operation. */
function serverOf(root: Fields): Server {
  const urls = listOf(root['servers']).map((server) => textOf(server['url']));
  const usable = urls.filter((url) => URL.canParse(url) && url.startsWith('https://') && !url.includes('{'));
  const [first] = usable;
  if (first === undefined) return { hosts: [], basePath: '' };
  const basePath = new URL(first).pathname.replace(/\/+$/, '');
  const same = usable.filter((url) => new URL(url).pathname.replace(/\/+$/, '') === basePath);
  return { hosts: [...new Set(same.map((url) => new URL(url).host))], basePath };
}

interface Made {
  readonly operation: OperationDraft | null;
  readonly reason: string;
  readonly notes: readonly string[];
}

function toOperation(found: DeclaredOperation, basePath: string): Made {
  const path = `${basePath}${found.path}`;
  const odd = found.path.split('/').find((segment) => /[{}]/.test(segment) && !/^\{[^{}]+\}$/.test(segment));
  if (odd !== undefined) return leaveOut(`its path has ${JSON.stringify(odd)}: a template stands for a whole segment`);
  const body = bodyInputs(found);
  if (typeof body === 'string') return leaveOut(body);
  const notes: string[] = [];
  const inputs = [...parameterInputs(found, notes), ...body];
  const missing = pathParameters(path).filter(
    (name) => !inputs.some((input) => input.in === 'path' && input.name === name),
  );
  const whole = [...inputs, ...missing.map((name) => pathInput(name))];
  const repeated = whole.find((input, at) => whole.findIndex((other) => other.name === input.name) !== at);
  if (repeated !== undefined) return leaveOut(`it has two inputs named ${JSON.stringify(repeated.name)}`);
  return { operation: draft(found, path, whole), reason: '', notes };
}

function draft(found: DeclaredOperation, path: string, inputs: readonly InputDraft[]): OperationDraft {
  return {
    name: found.id,
    method: found.method,
    path,
    summary: prose(found.operation['summary'], MAX_SUMMARY),
    description: prose(found.operation['description'], MAX_DESCRIPTION),
    approval: 'none',
    effect: effectOf(found.method),
    inputs: [...inputs],
    audit: pathParameters(path).map((name) => ({ name, source: `path.${name}` })),
  };
}

function effectOf(method: OperationMethod): OperationDraft['effect'] {
  if (method === 'GET' || method === 'HEAD') return 'read';
  return method === 'DELETE' ? 'delete' : 'write';
}

function leaveOut(reason: string): Made {
  return { operation: null, reason, notes: [] };
}

function pathInput(name: string): InputDraft {
  return { name, in: 'path', type: 'string', required: true, description: '' };
}

function parameterInputs({ parameters }: DeclaredOperation, notes: string[]): InputDraft[] {
  return parameters.flatMap((parameter): InputDraft[] => {
    const name = textOf(parameter['name']);
    const place = parameter['in'];
    if (place !== 'path' && place !== 'query') {
      notes.push(`the ${textOf(place)} parameter ${JSON.stringify(name)} is left out: args go to path, query and body`);
      return [];
    }
    const type = typeOf(fieldsOf(parameter['schema']));
    const isScalar = type !== 'array' && type !== 'object';
    if (place === 'query' && type === 'object') {
      notes.push(`the query parameter ${JSON.stringify(name)} is left out: no query can hold an object`);
      return [];
    }
    const required = place === 'path' || parameter['required'] === true;
    const description = prose(parameter['description'], MAX_DESCRIPTION);
    return [{ name, in: place, type: place === 'path' && !isScalar ? 'string' : type, required, description }];
  });
}

/** The properties of a JSON object body; a string says why the body cannot be expressed. */
function bodyInputs({ method, operation }: DeclaredOperation): InputDraft[] | string {
  const requestBody = fieldsOf(operation['requestBody']);
  const content = fieldsOf(requestBody['content']);
  const types = Object.keys(content);
  if (types.length === 0) return [];
  if (!sendsBody(method)) return `${method} has a body, but its args are sent in the query`;
  const json = types.find((type) => /^application\/(?:[^;]*\+)?json\b/i.test(type));
  if (json === undefined) return requestBody['required'] === true ? `its body is ${types.join(' or ')}, not JSON` : [];
  const schema = mergeSchema(fieldsOf(fieldsOf(content[json])['schema']), 0, { left: MAX_PARTS });
  const properties = Object.entries(fieldsOf(schema['properties']));
  if (properties.length === 0)
    return schema['type'] === 'object' || schema['type'] === undefined ? [] : 'its body is not a JSON object';
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  return properties.map(([name, property]) => ({
    name,
    in: 'body',
    type: typeOf(fieldsOf(property)),
    required: required.includes(name),
    description: prose(fieldsOf(property)['description'], MAX_DESCRIPTION),
  }));
}

const MAX_DEPTH = 8;
/** Limit on the schema parts read for one body: a recursive schema would never end. */
const MAX_PARTS = 1_000;

/** `allOf` merges its parts; `oneOf` and `anyOf` contribute every property, none of them required. */
function mergeSchema(schema: Fields, depth: number, parts: { left: number }): Fields {
  parts.left -= 1;
  if (depth > MAX_DEPTH || parts.left < 0) return schema;
  const mergeParts = (part: Fields): Fields => mergeSchema(part, depth + 1, parts);
  const all = listOf(schema['allOf']).map(mergeParts);
  const some = [...listOf(schema['oneOf']), ...listOf(schema['anyOf'])].map(mergeParts);
  if (all.length === 0 && some.length === 0) return schema;
  const whole: readonly Fields[] = [schema, ...all, ...some.map((part) => ({ ...part, required: [] }))];
  const properties = Object.assign({}, ...whole.map((part) => fieldsOf(part['properties'])));
  const required = whole.flatMap((part) => (Array.isArray(part['required']) ? part['required'] : []));
  return { type: 'object', properties, required };
}

/** JSON Schema allows several types. Null is ignored; if the rest is ambiguous, the input accepts any JSON value. */
function typeOf(schema: Fields): (typeof INPUT_TYPES)[number] {
  const declared = Array.isArray(schema['type']) ? schema['type'].filter((type) => type !== 'null') : [schema['type']];
  const known = INPUT_TYPES.find((type) => declared.length === 1 && type === declared[0]);
  if (known !== undefined) return known;
  if (schema['items'] !== undefined) return 'array';
  return schema['properties'] !== undefined || schema['allOf'] !== undefined ? 'object' : 'string';
}

function prose(value: unknown, maxCharacters: number): string {
  const plain = replaceHidden(textOf(value).replaceAll('\r\n', '\n'), { keepsLines: true, write: () => ' ' });
  return plain
    .slice(0, maxCharacters)
    .replace(/\p{Cs}$/u, '')
    .trim();
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map((item: unknown) => fieldsOf(item)) : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}
