import { SignatureV4 } from '@aws-sdk/signature-v4';
import { HttpRequest } from '@smithy/protocol-http';
import { percentDecode, percentEncode, textOfBytes } from './byte_text.ts';
import type { HashPort } from './outgoing_request.ts';
import { nameOf, pairsOf, valueOf } from './query_pairs.ts';
import type { InjectionOf } from './scheme_adapter.ts';

/** Of Signature Version 4, and of 4a, whose key pair is made from the same secret and whose scope has no region. */
export const SIGV4 = 'AWS4-HMAC-SHA256';
export const SIGV4A = 'AWS4-ECDSA-P256-SHA256';
export type SigningAlgorithm = typeof SIGV4 | typeof SIGV4A;

/** Services whose canonical path is the object key, encoded once and not normalised. */
const S3_SERVICES: ReadonlySet<string> = new Set(['s3', 's3express', 's3-object-lambda', 's3-outposts']);

export function isS3(service: string): boolean {
  return S3_SERVICES.has(service);
}

export interface SignerInput {
  readonly injection: InjectionOf<'sigv4-resign'>;
  readonly secretAccessKey: string;
  readonly now: Date;
  readonly hash: HashPort;
}

/** The signed part of a request. Header names are lower-case; values are as {@link canonicalValue} returns them. */
interface Signable {
  readonly method: string;
  readonly target: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly payloadHash: string;
}

/** Signs with one binding's key, region and service at one time; takes none of them from the request. */
export class Signer extends SignatureV4 {
  readonly algorithm: SigningAlgorithm = SIGV4;
  readonly longDate: string;
  /** `date/region/service/aws4_request`, without the region for version 4a. */
  readonly scope: string;
  readonly accessKeyId: string;
  readonly #now: Date;
  readonly #isS3: boolean;
  readonly #hash: HashPort;

  constructor({ injection, secretAccessKey, now, hash }: SignerInput, scopedTo = `${injection.region}/`) {
    const { accessKeyId, region, service } = injection;
    super({
      credentials: { accessKeyId, secretAccessKey },
      region,
      service,
      sha256: hash,
      uriEscapePath: !isS3(service),
      applyChecksum: false,
    });
    this.#now = now;
    this.#hash = hash;
    this.#isS3 = isS3(service);
    this.accessKeyId = accessKeyId;
    this.longDate = now.toISOString().replaceAll(/[-:]|\.\d+/g, '');
    this.scope = `${this.longDate.slice(0, 8)}/${scopedTo}${service}/aws4_request`;
  }

  /** The signature of a request, in hex. */
  async signatureOf({ method, target, headers, payloadHash }: Signable): Promise<string> {
    const [rawPath = ''] = target.split('?', 1);
    const path = this.#isS3 ? objectPath(rawPath) : textOfBytes(rawPath);
    const request = new HttpRequest({ method, path, query: queryBag(target) });
    const canonical = this.createCanonicalRequest(request, Object.fromEntries(headers), payloadHash);
    return this.signText(await this.createStringToSign(this.longDate, this.scope, canonical, this.algorithm));
  }

  /** The signature of a finished string to sign, in hex. */
  signText(stringToSign: string): Promise<string> {
    return this.sign(stringToSign, { signingDate: this.#now });
  }

  /** SHA-256 in hex. */
  async digestOf(chunks: readonly Uint8Array[]): Promise<string> {
    const hash = new this.#hash();
    for (const chunk of chunks) hash.update(chunk);
    return hexOf(await hash.digest());
  }
}

/** A header's values in canonical form: trimmed, runs of blanks collapsed, joined in order. */
export function canonicalValue(values: readonly string[]): string {
  return values
    .map((value) =>
      textOfBytes(value)
        .trim()
        .replaceAll(/[ \t]+/g, ' '),
    )
    .join(',');
}

function objectPath(rawPath: string): string {
  return percentEncode(textOfBytes(percentDecode(rawPath))).replaceAll('%2F', '/');
}

function queryBag(target: string): Record<string, string[]> {
  const bag = new Map<string, string[]>();
  for (const pair of pairsOf(target)) {
    if (pair === '') continue;
    const name = textOfBytes(nameOf(pair));
    bag.set(name, [...(bag.get(name) ?? []), textOfBytes(valueOf(pair))]);
  }
  return Object.fromEntries(bag);
}

export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
