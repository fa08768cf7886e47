import { z } from 'zod';
import { ACCESS_KEY_ID, AWS_REGION } from '../aws_fields.ts';
import { origin, VALUE_FIELD } from '../fields.ts';
import { KEPT, sourceKind } from '../source_descriptor.ts';

export const AWS_SECRETS_MANAGER = sourceKind('aws_secrets_manager', {
  title: 'AWS Secrets Manager',
  lead: 'A secret of AWS Secrets Manager, or a field of it, read there every few minutes.',
  ...KEPT,
  keys: ['secret access key'],
  keyHint: 'The secret access key of the caller.',
  fields: {
    access_key_id: ACCESS_KEY_ID,
    region: AWS_REGION,
    secret_id: {
      schema: z
        .string()
        .regex(/^[\w/+=.@:-]{1,2048}$/, 'is neither the name nor the ARN of a secret: give it as AWS shows it'),
      label: 'Secret there',
      hint: 'Its name or ARN',
      placeholder: 'ci/database',
    },
    field: VALUE_FIELD,
    version_stage: {
      schema: z
        .string()
        .regex(/^[\w+=,.@-]{1,256}$/, 'is not a stage, such as AWSPREVIOUS')
        .optional(),
      label: 'Stage',
      hint: 'Empty: AWSCURRENT',
      isRare: true,
    },
    secrets_manager_url: {
      schema: origin('https://secretsmanager.eu-central-1.amazonaws.com').optional(),
      label: 'Endpoint',
      hint: 'Empty: that of the region',
      isRare: true,
    },
  },
});
