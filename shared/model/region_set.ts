/** Whether a region of a signature is a set of regions, such as `*` or `us-east-1,eu-*`, which only Signature Version 4a can have. */
export function isRegionSet(region: string): boolean {
  return /[*,]/.test(region);
}
