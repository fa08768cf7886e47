/**
 * What a sidecar that cannot read a set of regions gets instead: no service has this region, so what is signed for it is not
 * accepted. Without the binding, a wildcard's binding would get its requests, or nothing would limit them.
 */
export const SET_FOR_A_NEWER_SIDECAR = 'a-set-that-needs-a-newer-svc';

/** Whether a region of a signature is a set of regions, such as `*` or `us-east-1,eu-*`, which only Signature Version 4a can have. */
export function isRegionSet(region: string): boolean {
  return /[*,]/.test(region);
}
