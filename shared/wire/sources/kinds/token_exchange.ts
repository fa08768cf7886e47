import { ALGORITHM, AUDIENCE, ISSUER, KEY_ID, SCOPES, SUBJECT, word } from '../fields.ts';
import {
  ASSERTION_AUDIENCE,
  GRANT,
  GRANT_CLIENT,
  GRANT_SERVER,
  grantKey,
  isRevokedElsewhere,
  lacksItsClient,
  RESOURCE,
  SEVERAL_KEYS,
} from '../grant_fields.ts';
import { sourceKind } from '../source_descriptor.ts';

const tokenType = word.regex(/^urn:/, 'is not a token type, such as urn:ietf:params:oauth:token-type:jwt').optional();

export const TOKEN_EXCHANGE = sourceKind('token_exchange', {
  title: 'Token exchange',
  lead: 'A token for a JWT that the key signs, or for a token that is the key (RFC 8693).',
  ...GRANT,
  keys: ['private key', 'token to exchange'],
  keyHint: `The private key in PEM that signs for issuer and subject; without the two, the token to exchange. ${SEVERAL_KEYS}`,
  fields: {
    ...GRANT_SERVER,
    /** For a JWT that the source signs. Without the two, the key of the source is itself the token that is exchanged. */
    issuer: { ...ISSUER, schema: word.optional() },
    subject: { ...SUBJECT, schema: word.optional() },
    assertion_audience: ASSERTION_AUDIENCE,
    algorithm: ALGORITHM,
    key_id: KEY_ID,
    /** Default: that of a JWT if the source signs one, or of an access token. */
    subject_token_type: {
      schema: tokenType,
      label: 'Type of the exchanged token',
      placeholder: 'urn:ietf:params:oauth:token-type:jwt',
      isRare: true,
    },
    requested_token_type: { schema: tokenType, label: 'Type of the token to get', isRare: true },
    /** Of the token of who acts for the subject (RFC 8693 section 2.1), which is then a part of the key. */
    actor_token_type: {
      schema: tokenType,
      label: 'Type of the token of who acts',
      hint: 'Then the key has an actor_token too',
      isRare: true,
    },
    ...GRANT_CLIENT,
    scopes: SCOPES,
    audience: AUDIENCE,
    resource: RESOURCE,
  },
  keyOf: grantKey,
  checks: [
    ({ issuer, subject }) =>
      (issuer === undefined) === (subject === undefined)
        ? null
        : {
            field: issuer === undefined ? 'issuer' : 'subject',
            message: 'is needed for a JWT that the source signs: give both or none',
          },
    lacksItsClient,
    isRevokedElsewhere,
  ],
});
