import { sha256Base64Url } from '../kernel/encoding.ts';
import type { DepartedAddress } from '../store/people/account_deletion.ts';

/** How an address is remembered of somebody who left an enterprise and deleted the account. */
export async function departedAddress(enterpriseId: string, address: string): Promise<DepartedAddress> {
  return { enterpriseId, addressHash: await sha256Base64Url(JSON.stringify([enterpriseId, address.toLowerCase()])) };
}
