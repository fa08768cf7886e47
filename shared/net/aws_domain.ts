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
