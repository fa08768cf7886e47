/** An address as it is compared: lower-case, in ASCII, so that no two spellings of one look like one another. */
export interface Email {
  /** The whole address, lower-case. */
  readonly address: string;
  readonly domain: string;
}

const MAX_ADDRESS = 254;
const ADDRESS =
  /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+)$/;

/** An address as it may be written. */
export const EMAIL_PATTERN = new RegExp(ADDRESS.source, 'i');

/** The address in a text; null when it is none, or one that is not written in ASCII. */
export function parseEmail(text: string): Email | null {
  const address = text.toLowerCase();
  const domain = address.length <= MAX_ADDRESS ? ADDRESS.exec(address)?.[1] : undefined;
  // Lower-casing maps some letters outside ASCII into it (the Kelvin sign to k): the text itself must have none.
  return domain === undefined || !/^[\x21-\x7e]+$/.test(text) ? null : { address, domain };
}

/** The slug that an enterprise begins with: `alice-acme` for `alice@acme.com`. */
export function slugOf({ address, domain }: Email): string {
  const words = [address.split('@')[0] ?? '', domain.split('.')[0] ?? ''];
  const slug = words
    .map((word) => word.replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-+|-+$/g, ''))
    .filter((word) => word !== '')
    .join('-');
  return slug.slice(0, 40).replace(/-+$/, '') || 'enterprise';
}
