/**
 * Arguments of a tool that a client repeats in headers, so that a proxy can route a call without reading its body (MCP 2026-07-28,
 * Streamable HTTP, "Custom Headers from Tool Parameters").
 */
const PREFIX = 'Mcp-Param-';
const ANNOTATION = 'x-mcp-header';
const TYPES: readonly unknown[] = ['string', 'integer', 'boolean'];
/** The name of a header that may repeat an argument: any token (RFC 9110 section 5.6.2). */
export const ARGUMENT_HEADER = /^mcp-param-[!#$%&'*+\-.^_`|~0-9a-z]+$/i;
/** RFC 9110 section 5.5, without the bytes of other encodings. */
const VALUE = /^[\t\x20-\x7e]*$/;
const SENTINEL = /^=\?base64\?(.*)\?=$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/** The code of a JSON-RPC error for headers that differ from the body; it comes with the status 400. */
export const HEADER_MISMATCH = -32_020;

interface Repeated {
  /** The names of the properties that lead to the argument. */
  readonly path: readonly string[];
  readonly header: string;
}

/**
 * What is wrong with the headers of a call; null if each repeats its argument. Otherwise a proxy in front could allow one call, and
 * the tool run another. The message has no value, because an argument may be secret.
 */
export function paramHeaderProblem(inputSchema: unknown, args: unknown, headers: Headers): string | null {
  for (const { path, header } of listRepeated(inputSchema, [])) {
    const problem = headerProblem(headers.get(header), primitiveAt(args, path));
    if (problem !== null) {
      return `Header mismatch: ${header} ${problem} (argument ${JSON.stringify(path.join('.'))})`;
    }
  }
  return null;
}

/** An annotation elsewhere or in another form is invalid: no client may call its tool over HTTP. */
function listRepeated(schema: unknown, path: readonly string[]): readonly Repeated[] {
  if (!isObject(schema)) return [];
  const name = schema[ANNOTATION];
  const isRepeated =
    path.length > 0 &&
    typeof name === 'string' &&
    ARGUMENT_HEADER.test(PREFIX + name) &&
    TYPES.includes(schema['type']);
  const { properties } = schema;
  const inside = isObject(properties) ? Object.entries(properties) : [];
  return [
    ...(isRepeated ? [{ path, header: PREFIX + name }] : []),
    ...inside.flatMap(([key, member]) => listRepeated(member, [...path, key])),
  ];
}

type Primitive = string | number | boolean;

/** The argument, if it has a form that a header can repeat. */
function primitiveAt(args: unknown, path: readonly string[]): Primitive | null {
  let at = args;
  for (const key of path) {
    if (!isObject(at) || !Object.hasOwn(at, key)) return null;
    at = at[key];
  }
  return typeof at === 'string' || typeof at === 'number' || typeof at === 'boolean' ? at : null;
}

function headerProblem(header: string | null, argument: Primitive | null): string | null {
  if (argument === null) return header === null ? null : 'must be left out: the body has no value for it';
  if (Number.isInteger(argument) && !Number.isSafeInteger(argument)) {
    return 'cannot repeat an integer beyond 9007199254740991: pass a smaller one';
  }
  if (header === null) return 'is missing: it must repeat the value in the body';
  const value = decodeValue(header);
  if (value === null) return 'is not plain ASCII or valid base64: write =?base64?…?= with the UTF-8 of the value';
  return isSame(value, argument) ? null : 'does not match the value in the body';
}

/** Numbers are compared as such: 42.0 is 42. */
function isSame(value: string, argument: Primitive): boolean {
  const isNumber = typeof argument === 'number' && DECIMAL.test(value);
  return isNumber ? Number(value) === argument : value === String(argument);
}

/** Null if it has characters that no header may have, or claims to be base64 and is not. */
function decodeValue(header: string): string | null {
  if (!VALUE.test(header)) return null;
  const encoded = SENTINEL.exec(header)?.[1];
  if (encoded === undefined) return header;
  if (!BASE64.test(encoded)) return null;
  try {
    const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    // The bytes are not UTF-8.
    if (!(error instanceof TypeError)) throw error;
    return null;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
