import { z } from 'zod';
import { ALGORITHM, AUDIENCE, CLIENT_ID, KEY_ID, SCOPES } from '../fields.ts';
import {
  ASSERTION_AUDIENCE,
  CLIENT_AUTHENTICATION,
  GRANT,
  GRANT_SERVER,
  isRevokedElsewhere,
  RESOURCE,
} from '../grant_fields.ts';
import { sourceKind } from '../source_descriptor.ts';

export const CLIENT_CREDENTIALS = sourceKind('client_credentials', {
  title: 'OAuth client',
  lead: 'An access token for a client itself, such as an application of Microsoft Entra ID (client_credentials).',
  ...GRANT,
  keys: ['client secret', 'private key'],
  keyHint: 'The client secret, or the private key of private_key_jwt.',
  fields: {
    ...GRANT_SERVER,
    client_id: CLIENT_ID,
    client_authentication: CLIENT_AUTHENTICATION,
    scopes: SCOPES,
    /** The parameter of the same name, which some providers need. */
    audience: AUDIENCE,
    resource: RESOURCE,
    assertion_audience: ASSERTION_AUDIENCE,
    algorithm: ALGORITHM,
    key_id: KEY_ID,
    /** Of the certificate with the public key, which Microsoft Entra ID wants in the assertion: SHA-1 or SHA-256. */
    certificate_thumbprint: {
      schema: z
        .string()
        .regex(
          /^(?:[\dA-Fa-f]{2}:?){19}[\dA-Fa-f]{2}$|^(?:[\dA-Fa-f]{2}:?){31}[\dA-Fa-f]{2}$/,
          'is no thumbprint: give 40 or 64 hexadecimal digits, as "openssl x509 -fingerprint" and the portal show them',
        )
        .optional(),
      label: 'Thumbprint of the certificate',
      hint: 'In hexadecimal, as the portal of Microsoft Entra ID shows it',
      isRare: true,
    },
  },
  keyOf: ({ client_authentication: way }) => (way === 'private_key_jwt' ? 'private key' : 'client secret'),
  checks: [isRevokedElsewhere],
});
