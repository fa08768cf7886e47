/** An address for comparison: lower-case ASCII, so that two different addresses never look alike. */
interface Email {
  /** The whole address, lower-case. */
  readonly address: string;
  readonly domain: string;
}

const MAX_ADDRESS = 254;
const ADDRESS =
  /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+)$/;

/** The allowed form of an address, in any letter case. Without a flag: a JSON Schema, such as the API's description, has none. */
export const EMAIL_PATTERN = new RegExp(ADDRESS.source.replaceAll('a-z', 'A-Za-z'));

/** The address in a text; null if there is none, or if it is not ASCII. */
export function parseEmail(text: string): Email | null {
  const address = text.toLowerCase();
  const domain = address.length <= MAX_ADDRESS ? ADDRESS.exec(address)?.[1] : undefined;
  // Lower-casing maps some non-ASCII letters to ASCII (the Kelvin sign to k), so the original text is checked.
  return domain === undefined || !/^[\x21-\x7e]+$/.test(text) ? null : { address, domain };
}

/** The initial slug of an enterprise: `alice-acme` for `alice@acme.com`. */
export function slugOf({ address, domain }: Email): string {
  const words = [address.split('@')[0] ?? '', domain.split('.')[0] ?? ''];
  const slug = words
    .map((word) => word.replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-+|-+$/g, ''))
    .filter((word) => word !== '')
    .join('-');
  return slug.slice(0, 40).replace(/-+$/, '') || 'enterprise';
}
