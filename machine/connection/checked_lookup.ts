import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';

/**
 * Resolves like the system, and fails for a name if any of its addresses is denied, so that no later attempt can use one. The
 * checked addresses are the dialled ones.
 */
export function checkedLookup(
  isDenied: (address: string) => boolean,
  denied: () => NodeJS.ErrnoException,
  lookup: typeof systemLookup = systemLookup,
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      if (addresses.some(({ address }) => isDenied(address))) return callback(denied(), []);
      const [first] = addresses;
      if (options.all === true || first === undefined) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}
