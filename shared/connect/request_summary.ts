import type { InstalledConnector, Operation } from '../model/connector.ts';
import { pathArgs } from './path_args.ts';

const MOST_CHARACTERS = 500;
const MOST_VALUE_CHARACTERS = 80;

/**
 * What a person is asked to approve, in one line: the operation, the host and what its path names. Values of the query and
 * the body are not told, for they may hold anything; nothing in the line can steer a terminal.
 */
export function requestSummary(
  { spec }: Pick<InstalledConnector, 'spec'>,
  operation: Operation,
  request: { readonly host: string; readonly path: string; readonly bodyBytes: number },
): string {
  const what = operation.summary === '' ? operation.name : operation.summary;
  const args = Array.from(pathArgs(operation.path, request.path), ([name, value]) => `${name} ${quoted(value)}`);
  const body = request.bodyBytes > 0 ? `, with a body of ${request.bodyBytes} bytes` : '';
  const line = `${spec.title}: ${what} (${operation.method} ${request.host}${args.length > 0 ? `: ${args.join(', ')}` : ''}${body})`;
  return plain(line).slice(0, MOST_CHARACTERS);
}

function quoted(value: string): string {
  return JSON.stringify(value.slice(0, MOST_VALUE_CHARACTERS));
}

function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, ' ');
}
