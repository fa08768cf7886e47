import { ALGORITHM, AUDIENCE, ISSUER, KEY_ID, SCOPES, SUBJECT } from '../fields.ts';
import {
  GRANT,
  GRANT_CLIENT,
  GRANT_SERVER,
  grantKey,
  isRevokedElsewhere,
  lacksItsClient,
  SEVERAL_KEYS,
} from '../grant_fields.ts';
import { sourceKind } from '../source_descriptor.ts';

export const JWT_BEARER = sourceKind('jwt_bearer', {
  title: 'JWT bearer',
  lead: 'An access token for a JWT that the key signs (RFC 7523).',
  ...GRANT,
  keys: ['private key'],
  keyHint: `The private key, in PEM. ${SEVERAL_KEYS}`,
  fields: {
    ...GRANT_SERVER,
    issuer: ISSUER,
    subject: SUBJECT,
    /** Default: the token URL. */
    audience: AUDIENCE,
    scopes: SCOPES,
    algorithm: ALGORITHM,
    key_id: KEY_ID,
    ...GRANT_CLIENT,
  },
  keyOf: grantKey,
  checks: [lacksItsClient, isRevokedElsewhere],
});
