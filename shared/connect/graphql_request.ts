import { err, ok, type Result } from '../model/result.ts';
import { readGraphqlDocument, type GraphqlDocument } from './graphql_document.ts';
import { parseUniqueJson, parseUniqueJsonBytes } from './unique_json.ts';

/** The members that a server reads from a request (GraphQL over HTTP, section "Request Parameters"). */
type Parameters = Readonly<Record<string, unknown>>;

/** A server that knows another name could read its document, or a list of them, from there. */
const NAMES: readonly string[] = ['query', 'operationName', 'variables', 'extensions'];
const JSON_PARAMETERS: readonly string[] = ['variables', 'extensions'];
/** Names the client program; anything else in `extensions` may select a stored document. */
const HARMLESS_EXTENSION = 'clientLibrary';
/** Reads the document of a request to a GraphQL endpoint. The error is a sentence. */
export function readGraphqlRequest(
  { method, query }: { readonly method: string; readonly query: string | null },
  body: readonly Uint8Array[],
): Result<GraphqlDocument, string> {
  const parameters = method === 'GET' ? parametersOfQuery(query ?? '') : parametersOfBody(body);
  if (!parameters.ok) return parameters;
  const fault = parametersFault(parameters.value);
  if (fault !== null) return err(fault);
  const { query: text, operationName } = parameters.value;
  if (typeof text !== 'string') return err('it has no document: a document stored at the server cannot be inspected');
  const document = readGraphqlDocument(text, typeof operationName === 'string' ? operationName : null);
  return document.ok ? document : err(`its document ${document.error}`);
}

function parametersOfBody(body: readonly Uint8Array[]): Result<Parameters, string> {
  const json = parseUniqueJsonBytes(body);
  if (!json.ok) return err(`its body ${json.error}`);
  const { value } = json;
  if (Array.isArray(value)) return err('it is a batch: send one operation in each request');
  return typeof value === 'object' && value !== null ? ok({ ...value }) : err('its body is not a JSON object');
}

/** Some servers treat `;` as `&`, so it has to be encoded. */
function parametersOfQuery(query: string): Result<Parameters, string> {
  if (query.includes(';')) return err('its query has a ";" in it: encode it as %3B');
  const parameters = new Map<string, unknown>();
  for (const pair of query.split('&').filter((each) => each !== '')) {
    const [encodedName = '', ...rest] = pair.split('=');
    const [name, text] = [decodePart(encodedName), decodePart(rest.join('='))];
    if (name === null || text === null) return err('its query has an invalid escape');
    if (parameters.has(name)) return err('its query repeats a parameter');
    const value = JSON_PARAMETERS.includes(name) ? parseUniqueJson(text) : ok(text);
    if (!value.ok) return err(`its ${name} ${value.error}`);
    parameters.set(name, value.value);
  }
  return ok(Object.fromEntries(parameters));
}

function decodePart(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}

function parametersFault(parameters: Parameters): string | null {
  const { operationName = null, variables = null, extensions = null } = parameters;
  if (Object.keys(parameters).some((name) => !NAMES.includes(name))) {
    return 'it has a member other than query, operationName and variables';
  }
  if (operationName !== null && typeof operationName !== 'string') return 'its operationName is not a string';
  if (!isObjectOrNull(variables)) return 'its variables are not a JSON object';
  if (!isObjectOrNull(extensions) || Object.keys(extensions ?? {}).some((name) => name !== HARMLESS_EXTENSION)) {
    return 'it has extensions, which may select a stored document: send it without them';
  }
  return null;
}

function isObjectOrNull(value: unknown): value is object | null {
  return typeof value === 'object' && !Array.isArray(value);
}
