import { expect, test } from 'vitest';
import { awsDomain, parseKmsKey } from '../../model/kms_key.ts';
import { AWS_REGION } from './aws_fields.ts';

test.each([
  ['eu-central-1', 'amazonaws.com'],
  ['us-gov-west-1', 'amazonaws.com'],
  ['cn-north-1', 'amazonaws.com.cn'],
  ['eusc-de-east-1', 'amazonaws.eu'],
  ['us-iso-east-1', 'c2s.ic.gov'],
  ['us-isob-east-1', 'sc2s.sgov.gov'],
  ['us-isof-south-1', 'csp.hci.ic.gov'],
  ['eu-isoe-west-1', 'cloud.adc-e.uk'],
])('the services of %s are at %s', (region, domain) => {
  expect(AWS_REGION.schema.safeParse(region).success).toBe(true);
  expect(awsDomain(region)).toBe(domain);
  expect(parseKmsKey(`arn:aws:kms:${region}:123456789012:key/k`)).toMatchObject({ value: { domain } });
});
