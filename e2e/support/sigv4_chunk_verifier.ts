import { createHash, createHmac } from 'node:crypto';

const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');
const hmac = (key: Buffer | string, data: string): Buffer => createHmac('sha256', key).update(data).digest();

/** The inputs of a request's chunk signatures; the seed is the signature of its head. */
interface ChunkSeed {
  readonly secret: string;
  readonly region: string;
  readonly service: string;
  /** As in the request's `x-amz-date`. */
  readonly time: string;
  readonly signature: string;
}

/** The seed of a request whose head has been verified. */
export function chunkSeed(secret: string, authorization: string, time: string): ChunkSeed {
  const [, region = '', service = '', signature = ''] =
    /\/\d{8}\/([^/]+)\/([^/]+)\/aws4_request.*Signature=([0-9a-f]{64})$/.exec(authorization) ?? [];
  return { secret, region, service, time, signature };
}

/**
 * Checks the chunks of an `aws-chunked` body as S3 does, from the published description ("Signature calculations for the
 * Authorization header: transferring a payload in multiple chunks") and with none of the libraries that sign here.
 */
export class ChunkVerifier {
  readonly #key: Buffer;
  readonly #time: string;
  readonly #scope: string;
  #previous: string;

  constructor({ secret, region, service, time, signature }: ChunkSeed) {
    const date = time.slice(0, 8);
    this.#key = hmac(hmac(hmac(hmac(`AWS4${secret}`, date), region), service), 'aws4_request');
    this.#time = time;
    this.#scope = `${date}/${region}/${service}/aws4_request`;
    this.#previous = signature;
  }

  /** Whether this is the signature of the next chunk. */
  chunk(data: Buffer, signature: string): boolean {
    return this.#next('AWS4-HMAC-SHA256-PAYLOAD', [sha256(''), sha256(data)]) === signature;
  }

  /** Whether this is the signature of the trailer; `lines` are `name:value`. */
  trailer(lines: readonly string[], signature: string): boolean {
    return this.#next('AWS4-HMAC-SHA256-TRAILER', [sha256(lines.map((line) => `${line}\n`).join(''))]) === signature;
  }

  #next(algorithm: string, hashes: readonly string[]): string {
    const text = [algorithm, this.#time, this.#scope, this.#previous, ...hashes].join('\n');
    this.#previous = hmac(this.#key, text).toString('hex');
    return this.#previous;
  }
}
