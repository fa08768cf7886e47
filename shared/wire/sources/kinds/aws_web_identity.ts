import { z } from 'zod';
import { AWS_SESSION_SECONDS, NARROWED_ROLE, ROLE_FIELDS } from '../aws_fields.ts';
import { ALGORITHM, AUDIENCE, ISSUER, KEY_ID, SUBJECT, word } from '../fields.ts';
import { sourceKind } from '../source_descriptor.ts';

export const AWS_WEB_IDENTITY = sourceKind('aws_web_identity', {
  title: 'AWS role by identity',
  lead: 'A key set of a role for a JWT that the key signs, so that no access key exists. Only an AWS signature can use it.',
  runs: 'control_plane',
  value: 'key_set',
  lifeSeconds: AWS_SESSION_SECONDS,
  revokes: 'never',
  keys: ['private key'],
  keyHint: 'The private key, in PEM, whose public key the issuer publishes.',
  fields: {
    ...ROLE_FIELDS,
    /** The OpenID provider in IAM, at whose URL AWS finds the public key. */
    issuer: { ...ISSUER, schema: z.string().regex(/^https:\/\/[\x21-\x7e]{1,250}$/, 'is not an https URL') },
    subject: SUBJECT,
    audience: { ...AUDIENCE, schema: word.default('sts.amazonaws.com') },
    algorithm: { ...ALGORITHM, schema: z.enum(['RS256', 'ES256']).default('RS256') },
    key_id: KEY_ID,
  },
  narrowedBy: NARROWED_ROLE,
});
