import { err, ok, type Result } from './result.ts';

/** A key of a cloud's key management service that wraps the master key of a home (decision 0153). Its name is not secret. */
export type KmsKey =
  | { readonly cloud: 'aws'; readonly name: string; readonly region: string; readonly domain: string }
  | { readonly cloud: 'google'; readonly name: string };

const AWS = /^arn:aws[a-z-]{0,10}:kms:([a-z]{2,8}(?:-[a-z]{1,12}){1,3}-\d{1,2}):\d{12}:key\/[A-Za-z0-9-]{1,64}$/;
const GOOGLE =
  /^projects\/[a-z0-9.:-]{1,63}\/locations\/[a-z0-9-]{1,63}\/keyRings\/[A-Za-z0-9_-]{1,63}\/cryptoKeys\/[A-Za-z0-9_-]{1,63}$/;

/** Reads the name of a key. An alias of AWS is refused, because it may name another key tomorrow, which opens nothing. */
export function parseKmsKey(text: string): Result<KmsKey, string> {
  const region = AWS.exec(text)?.[1];
  if (region !== undefined) {
    return ok({ cloud: 'aws', name: text, region, domain: awsDomain(region) });
  }
  if (GOOGLE.test(text)) return ok({ cloud: 'google', name: text });
  return err(
    'is not the name of a key: give the ARN of a key of AWS, such as arn:aws:kms:eu-central-1:123456789012:key/ID (not an alias), or of a key of Google, such as projects/P/locations/europe-west3/keyRings/R/cryptoKeys/K (without a version)',
  );
}

/** By what the name of a region begins with: the partitions of AWS other than the commercial one and GovCloud. */
const DOMAINS: ReadonlyMap<string, string> = new Map([
  ['cn', 'amazonaws.com.cn'],
  ['eusc', 'amazonaws.eu'],
  ['us-iso', 'c2s.ic.gov'],
  ['us-isob', 'sc2s.sgov.gov'],
  ['us-isof', 'csp.hci.ic.gov'],
  ['eu-isoe', 'cloud.adc-e.uk'],
]);

/** The domain of AWS's services in a region. */
export function awsDomain(region: string): string {
  const [area = '', place = ''] = region.split('-');
  return DOMAINS.get(`${area}-${place}`) ?? DOMAINS.get(area) ?? 'amazonaws.com';
}
