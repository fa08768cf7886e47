import { GRAPHQL_FIELDS_SOURCE, pathParameters, type Operation } from '../model/connector.ts';
import { describeDocument, type GraphqlDocument } from './graphql_document.ts';
import { pathArgs } from './path_args.ts';
import { replaceHidden } from '../model/shown_text.ts';

/** An audit field in an event: the value, or only whether there was one. */
type AuditFieldValue = string | number | boolean;

/** The parts of a request that audit fields are taken from. `givenInputs`: the names of its query and body inputs. */
interface AuditedRequest {
  /** As it was sent, without the query. */
  readonly path: string;
  readonly givenInputs: ReadonlySet<string>;
  readonly status: number | null;
  /** Absent while the body is unread, and for a request without a body. */
  readonly document?: GraphqlDocument | undefined;
}

const MOST_CHARACTERS = 200;

/**
 * The typed audit fields of a request. Only path inputs and the status are recorded with their value. Of a query or body
 * input the event says only that it was present, and of a GraphQL document which fields it names, because audit records omit
 * query strings and body values (specification section 4).
 */
export function auditFields(operation: Operation, request: AuditedRequest): Record<string, AuditFieldValue> {
  const args = pathArgs(operation.path, request.path);
  const fields: Record<string, AuditFieldValue> = {};
  for (const { name, source, redact } of operation.audit) {
    const value = fieldValue(source, redact, args, request);
    if (value !== null) fields[name] = value;
  }
  return fields;
}

function fieldValue(
  source: string,
  redact: boolean,
  args: ReadonlyMap<string, string>,
  { givenInputs, status, document }: AuditedRequest,
): AuditFieldValue | null {
  if (source === 'status') return redact ? status !== null : status;
  if (source === GRAPHQL_FIELDS_SOURCE) {
    const asked = document === undefined ? null : describeDocument(document);
    return redact ? asked !== null : asked;
  }
  if (!source.startsWith('path.')) return givenInputs.has(source);
  const value = args.get(source.slice('path.'.length));
  if (redact) return value !== undefined;
  return value === undefined ? null : toStorable(value);
}

/** A path with the template's `{name}` in place of each value that the spec redacts. */
export function redactPath({ path: template, audit }: Operation, path: string): string {
  const redacted = audit.flatMap(({ source, redact }) => (redact ? [source] : []));
  if (!pathParameters(template).some((name) => redacted.includes(`path.${name}`))) return path;
  const names = template.split('/');
  const segments = path.split('/').map((segment, index) => {
    const name = names[index] ?? '';
    return name.startsWith('{') && redacted.includes(`path.${name.slice(1, -1)}`) ? name : segment;
  });
  return segments.join('/');
}

/** Escaped for the audit log, which refuses an event with a character that it cannot store. */
function toStorable(value: string): string {
  return replaceHidden(value.slice(0, MOST_CHARACTERS), { keepsLines: false, write: () => '\ufffd' });
}
