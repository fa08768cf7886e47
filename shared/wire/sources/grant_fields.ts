import { z } from 'zod';
import type { FieldProblem } from '../../model/problem.ts';
import { providerUrl } from '../connectors/connector_credentials.ts';
import { CLIENT_ID, fewerScopes, TOKEN_URL, word } from './fields.ts';
import { type KeyedGrant, keyPartsOf } from './key_parts.ts';

/** What a kind is about that asks for a token by a grant of OAuth. */
export const GRANT = {
  runs: 'control_plane',
  value: 'token',
  lifeSeconds: null,
  revokes: 'by revocation_url',
  narrowedBy: { scopes: fewerScopes },
} as const;

/** The server of a grant of OAuth, and where on it tokens are revoked (RFC 7009). Absent: they end by themselves. */
export const GRANT_SERVER = {
  token_url: TOKEN_URL,
  revocation_url: {
    schema: providerUrl.optional(),
    label: 'Revocation URL',
    hint: 'Where the provider ends tokens early (RFC 7009), on the server of the token URL',
    placeholder: 'https://id.example.com/oauth2/revoke',
  },
};

/** RFC 6749 section 2.3.1, or RFC 7523 section 2.2. */
const CLIENT_WAYS = ['basic', 'post', 'private_key_jwt'] as const;
export const CLIENT_AUTHENTICATION = {
  schema: z.enum(CLIENT_WAYS).default('basic'),
  label: 'How the client authenticates',
  hint: 'basic: its secret in a header; post: its secret in the body; private_key_jwt: an assertion that its key signs',
};

/** How the client of a grant authenticates, which is who asks and not for whom. Absent: it does not. */
export const GRANT_CLIENT = {
  /** Absent: no client is named. */
  client_id: { ...CLIENT_ID, schema: word.optional() },
  client_authentication: { ...CLIENT_AUTHENTICATION, schema: z.enum(['none', ...CLIENT_WAYS]).optional() },
};

export const RESOURCE = {
  schema: providerUrl.optional(),
  label: 'Resource',
  hint: 'The URL of the API (RFC 8707)',
  isRare: true,
} as const;
export const ASSERTION_AUDIENCE = {
  schema: word.optional(),
  label: 'Audience of the assertion',
  hint: 'Empty: the token URL',
  isRare: true,
} as const;

export const SEVERAL_KEYS =
  'With a client secret or an actor token: a JSON object with private_key or token, client_secret and actor_token, as needed.';

export function grantKey(source: KeyedGrant): string {
  const parts = keyPartsOf(source);
  if (parts.length > 1) return `JSON object with ${parts.join(' and ')}`;
  return parts[0] === 'token' ? 'token to exchange' : 'private key';
}

interface Grant {
  readonly token_url: string;
  readonly revocation_url?: string | undefined;
  readonly client_id?: string | undefined;
  readonly client_authentication?: KeyedGrant['client_authentication'];
}

export function isRevokedElsewhere({ token_url: url, revocation_url: revocation }: Grant): FieldProblem | null {
  if (revocation === undefined || new URL(revocation).origin === new URL(url).origin) return null;
  return { field: 'revocation_url', message: 'must be on the server of token_url: a token is sent to no other' };
}

export function lacksItsClient({ client_id: client, client_authentication: way = 'none' }: Grant): FieldProblem | null {
  if (client !== undefined || way === 'none') return null;
  return { field: 'client_id', message: 'is needed for client_authentication: the client that authenticates' };
}
