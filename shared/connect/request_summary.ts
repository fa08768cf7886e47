import type { InstalledConnector, Operation } from '../model/connector.ts';
import { describeDocument, type GraphqlDocument } from './graphql_document.ts';
import { pathArgs } from './path_args.ts';
import { toShownLine } from '../model/shown_text.ts';
import { counted } from '../model/sentence.ts';

const MOST_CHARACTERS = 500;
const MOST_VALUE_CHARACTERS = 80;
/** Before the fields of a GraphQL document. */
const MOST_TITLE_CHARACTERS = 100;

interface SummarisedRequest {
  readonly host: string;
  readonly path: string;
  readonly query: string | null;
  readonly bodyBytes: number;
  /** Set for a request to a GraphQL endpoint. */
  readonly document?: GraphqlDocument | undefined;
}

/**
 * The line that a person is asked to approve: the operation, the host, whether there are a query and a body, the path
 * inputs, and for a GraphQL document each field, which is never truncated. Values of the query and the body are not shown,
 * because they may contain anything. A truncated value ends with `…`. Nothing in the line can control a terminal.
 */
export function requestSummary(
  { spec }: Pick<InstalledConnector, 'spec'>,
  operation: Operation,
  request: SummarisedRequest,
): string {
  const what = operation.summary === '' ? operation.name : operation.summary;
  const { document } = request;
  const asked =
    document === undefined
      ? spec.title
      : `${toShownLine(spec.title, MOST_TITLE_CHARACTERS)}: ${describeDocument(document)}`;
  const query = request.query === null ? '' : ', with a query';
  const body = request.bodyBytes > 0 ? `, with a body of ${counted(request.bodyBytes, 'byte')}` : '';
  const args = Array.from(pathArgs(operation.path, request.path), ([name, value]) => `${name} ${quoteValue(value)}`);
  const named = args.length > 0 ? `: ${args.join(', ')}` : '';
  const line = `${asked}: ${what} (${operation.method} ${request.host}${query}${body}${named})`;
  return toShownLine(line, MOST_CHARACTERS);
}

/** The mark of a truncated value is outside the quotes, where no value can put it. */
function quoteValue(value: string): string {
  const shown = JSON.stringify(value.slice(0, MOST_VALUE_CHARACTERS));
  return value.length > MOST_VALUE_CHARACTERS ? `${shown}…` : shown;
}
