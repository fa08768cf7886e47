import type { Operation } from '../../shared/model/connector.ts';
import { memberNames } from '../../shared/wire/json_scan.ts';

const NONE: ReadonlySet<string> = new Set();

/**
 * Lists which of the operation's audited inputs a request has, as `<place>.<input>`: query inputs by name, body inputs by
 * the members of a body that is a JSON object. It never looks at values. The body has at most `maxReadBodyBytes` and is not
 * parsed.
 */
export function listGivenInputs(
  operation: Operation,
  query: string | null,
  body: readonly Uint8Array[],
): ReadonlySet<string> {
  const sources = operation.audit.map(({ source }) => source);
  const ofQuery = query !== null && sources.some((source) => source.startsWith('query.'));
  const ofBody = body.length > 0 && readsBody(operation);
  if (!ofQuery && !ofBody) return NONE;
  const given = new Set<string>();
  if (ofQuery) for (const name of new URLSearchParams(query).keys()) given.add(`query.${name}`);
  if (ofBody) for (const name of membersOf(body)) given.add(`body.${name}`);
  return given;
}

/** Whether the body of a request to the operation has to be read for its audit fields. */
export function readsBody({ audit }: Operation): boolean {
  return audit.some(({ source }) => source.startsWith('body.'));
}

/** The scan works on bytes; a non-ASCII or escaped name is decoded separately. */
function membersOf(body: readonly Uint8Array[]): readonly string[] {
  const text = Buffer.concat(body).toString('latin1');
  return memberNames(text).flatMap((name) => (PLAIN.test(name) ? [name] : decodeName(name)));
}

const PLAIN = /^[ !#-[\]-~]*$/;

function decodeName(name: string): string[] {
  try {
    return [String(JSON.parse(`"${Buffer.from(name, 'latin1').toString('utf8')}"`))];
  } catch {
    return [];
  }
}
