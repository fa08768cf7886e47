import { z } from 'zod';
import { ACCESS_KEY_ID, AWS_SESSION_SECONDS, NARROWED_ROLE, ROLE_FIELDS } from '../aws_fields.ts';
import { LIST } from '../fields.ts';
import { sourceKind } from '../source_descriptor.ts';

const TAG_CHARACTERS = String.raw`[\p{L}\p{N} _.:/=+\-@]`;
const tagText = (longest: number) =>
  z
    .string()
    .regex(new RegExp(`^${TAG_CHARACTERS}{0,${longest}}$`, 'u'), 'has a character that no tag may have')
    // The API's description takes a pattern's flag for a part of it. JSON Schema reads every pattern with this one.
    .meta({ pattern: `^${TAG_CHARACTERS}{0,${longest}}$` });

export const AWS_ASSUME_ROLE = sourceKind('aws_assume_role', {
  title: 'AWS role',
  lead: 'A key set of a role that a caller with an access key assumes. Only an AWS signature can use it.',
  runs: 'control_plane',
  value: 'key_set',
  lifeSeconds: AWS_SESSION_SECONDS,
  revokes: 'never',
  keys: ['secret access key'],
  keyHint: 'The secret access key of the caller.',
  fields: {
    access_key_id: ACCESS_KEY_ID,
    ...ROLE_FIELDS,
    external_id: {
      schema: z
        .string()
        .regex(/^[\w+=,.@:/-]{2,1224}$/, 'is not an external id')
        .optional(),
      label: 'External id',
      hint: 'If the trust policy of the role wants one',
      isRare: true,
    },
    tags: {
      schema: z.record(tagText(128).min(1), tagText(256)).optional(),
      label: 'Session tags',
      hint: 'Such as team=web, stage=test',
      isRare: true,
    },
    /** The tags that stay when the session assumes another role. */
    transitive_tag_keys: {
      schema: z.array(tagText(128).min(1)).max(50).optional(),
      label: 'Transitive tags',
      hint: LIST,
      isRare: true,
    },
  },
  narrowedBy: NARROWED_ROLE,
});
