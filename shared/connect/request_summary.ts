import type { InstalledConnector, Operation } from '../model/connector.ts';
import { pathArgs } from './path_args.ts';
import { shownLine } from '../model/shown_text.ts';

const MOST_CHARACTERS = 500;
const MOST_VALUE_CHARACTERS = 80;

/**
 * What a person is asked to approve, in one line: the operation, the host, whether there are a query and a body, and what
 * the path names. Values of the query and the body are not told, for they may hold anything; a value that is cut ends with `…`;
 * nothing in the line can steer a terminal.
 */
export function requestSummary(
  { spec }: Pick<InstalledConnector, 'spec'>,
  operation: Operation,
  request: { readonly host: string; readonly path: string; readonly query: string | null; readonly bodyBytes: number },
): string {
  const what = operation.summary === '' ? operation.name : operation.summary;
  const query = request.query === null ? '' : ', with a query';
  const body = request.bodyBytes > 0 ? `, with a body of ${request.bodyBytes} bytes` : '';
  const args = Array.from(pathArgs(operation.path, request.path), ([name, value]) => `${name} ${quoted(value)}`);
  const named = args.length > 0 ? `: ${args.join(', ')}` : '';
  const line = `${spec.title}: ${what} (${operation.method} ${request.host}${query}${body}${named})`;
  return shownLine(line, MOST_CHARACTERS);
}

/** The mark of what is cut stands behind the quotes, where no value can put it. */
function quoted(value: string): string {
  const shown = JSON.stringify(value.slice(0, MOST_VALUE_CHARACTERS));
  return value.length > MOST_VALUE_CHARACTERS ? `${shown}…` : shown;
}
