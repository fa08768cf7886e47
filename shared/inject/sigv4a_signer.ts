import { joinBytes } from './join_bytes.ts';
import type { HashPort } from './outgoing_request.ts';
import { hexOf, SIGV4A, Signer, type SignerInput } from './sigv4_signer.ts';

type SigningKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

const CURVE = { name: 'ECDSA', namedCurve: 'P-256' } as const;
/** The order of the curve P-256, less two (FIPS 186-4, D.1.2.3): a candidate above it is passed over. */
const ORDER_LESS_TWO = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n - 2n;
const LAST_COUNTER = 254;
/** PKCS#8 of a private key on P-256 without its public key, up to the 32 bytes of the number (RFC 5915, RFC 5958). */
const PKCS8_START = '3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420';
const NUMBER_BYTES = 32;

/**
 * Signs with AWS Signature Version 4a: ECDSA on P-256, valid in every region of the binding's set. Signatures are DER in hex and
 * differ each time.
 */
export class SigV4aSigner extends Signer {
  override readonly algorithm = SIGV4A;
  readonly #key: Promise<SigningKey>;

  constructor(input: SignerInput) {
    super(input, '');
    this.#key = deriveSigningKey(input.injection.accessKeyId, input.secretAccessKey, input.hash);
    // Who signs hears of a failure.
    this.#key.catch(() => undefined);
  }

  override async signText(stringToSign: string): Promise<string> {
    const text = new TextEncoder().encode(stringToSign);
    const pair = new Uint8Array(await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, await this.#key, text));
    return hexOf(derSignature(pair));
  }
}

/**
 * The key of version 4a for an access key: a number of NIST SP 800-108 in counter mode (HMAC-SHA-256 over the algorithm, the access
 * key id and a counter that goes up until the number fits), plus one.
 */
export async function derivePrivateNumber(
  accessKeyId: string,
  secretAccessKey: string,
  hash: HashPort,
): Promise<bigint> {
  const encoder = new TextEncoder();
  for (let counter = 1; counter <= LAST_COUNTER; counter += 1) {
    const input = joinBytes([
      Uint8Array.of(0, 0, 0, 1),
      encoder.encode(SIGV4A),
      Uint8Array.of(0),
      encoder.encode(accessKeyId),
      // The counter, and the length of the result: 256 bits.
      Uint8Array.of(counter, 0, 0, 1, 0),
    ]);
    const keyed = new hash(encoder.encode(`AWS4A${secretAccessKey}`));
    keyed.update(input);
    const candidate = BigInt(`0x${hexOf(await keyed.digest())}`);
    if (candidate <= ORDER_LESS_TWO) return candidate + 1n;
  }
  throw new Error('no signing key can be derived from this access key');
}

async function deriveSigningKey(accessKeyId: string, secretAccessKey: string, hash: HashPort): Promise<SigningKey> {
  const number = await derivePrivateNumber(accessKeyId, secretAccessKey, hash);
  const key = bytesOfHex(PKCS8_START + number.toString(16).padStart(2 * NUMBER_BYTES, '0'));
  return crypto.subtle.importKey('pkcs8', key, CURVE, false, ['sign']);
}

/** The two numbers of a signature, 32 bytes each, as DER (RFC 3279, section 2.2.3). */
export function derSignature(pair: Uint8Array): Uint8Array {
  const numbers = joinBytes([pair.subarray(0, NUMBER_BYTES), pair.subarray(NUMBER_BYTES)].map(derInteger));
  return joinBytes([Uint8Array.of(0x30, numbers.length), numbers]);
}

/** Without zeros in front, but for the one that keeps the number positive. */
function derInteger(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte !== 0);
  const significant = bytes.subarray(first === -1 ? bytes.length - 1 : first);
  const number = (significant[0] ?? 0) > 0x7f ? joinBytes([Uint8Array.of(0), significant]) : significant;
  return joinBytes([Uint8Array.of(0x02, number.length), number]);
}

function bytesOfHex(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: hex.length / 2 }, (_byte, at) => Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16));
}
