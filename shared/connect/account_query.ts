import { parseUniqueJson } from './unique_json.ts';
import { objectOf, textOf } from './id_token.ts';

/**
 * How a provider is asked whose a new token is, where its token reply does not say. The program asks the same question during its
 * login. The request is written here, so nothing that the program sends goes with the token.
 */
export interface AccountQuery {
  readonly host: string;
  /** Of a POST without a query. */
  readonly path: string;
  /** GraphQL: the whole document that the program sends, without variables. */
  readonly document: string;
}

/** By token URL. */
const QUERIES: ReadonlyMap<string, AccountQuery> = new Map([
  [
    'https://github.com/login/oauth/access_token',
    { host: 'api.github.com', path: '/graphql', document: 'query UserCurrent{viewer{login}}' },
  ],
]);

export function accountQueryOf(tokenUrl: string): AccountQuery | null {
  return QUERIES.get(tokenUrl) ?? null;
}

/** Whether a body is this question and nothing else. */
export function isAccountQuery({ document }: AccountQuery, body: string): boolean {
  const parsed = parseUniqueJson(body);
  if (!parsed.ok) return false;
  const { query, variables = null, ...rest } = objectOf(parsed.value);
  const hasVariables = variables !== null && JSON.stringify(variables) !== '{}';
  return query === document && !hasVariables && Object.keys(rest).length === 0;
}

export function accountQueryBody({ document }: AccountQuery): string {
  return JSON.stringify({ query: document });
}

/** The user name in the reply; null if it has none. Letters, digits, hyphens and underscores, as in names on GitHub. */
export function readAccountName(text: string): string | null {
  const parsed = parseUniqueJson(text);
  if (!parsed.ok) return null;
  const name = textOf(objectOf(objectOf(objectOf(parsed.value)['data'])['viewer'])['login']);
  return name !== null && /^[A-Za-z0-9_-]{1,100}$/.test(name) ? name : null;
}

/** The reply that the program gets. */
export function accountReply(name: string): string {
  return JSON.stringify({ data: { viewer: { login: name } } });
}
