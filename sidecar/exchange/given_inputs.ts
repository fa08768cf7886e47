import type { Operation } from '../../shared/model/connector.ts';

const NONE: ReadonlySet<string> = new Set();

/**
 * Which of the inputs that an operation audits a request has, as `<place>.<input>`: query inputs by the names in its query,
 * body inputs by the members of its body, when that is a JSON object. Values are not looked at.
 */
export function givenInputs(
  { audit }: Operation,
  query: string | null,
  body: readonly Uint8Array[],
): ReadonlySet<string> {
  const sources = audit.map(({ source }) => source);
  const ofQuery = query !== null && sources.some((source) => source.startsWith('query.'));
  const ofBody = body.length > 0 && sources.some((source) => source.startsWith('body.'));
  if (!ofQuery && !ofBody) return NONE;
  const given = new Set<string>();
  if (ofQuery) for (const name of new URLSearchParams(query).keys()) given.add(`query.${name}`);
  if (ofBody) for (const name of membersOf(body)) given.add(`body.${name}`);
  return given;
}

function membersOf(body: readonly Uint8Array[]): readonly string[] {
  try {
    const json: unknown = JSON.parse(Buffer.concat(body).toString('utf8'));
    return typeof json === 'object' && json !== null ? Object.keys(json) : [];
  } catch {
    return [];
  }
}
