/** Values of `x-amz-content-sha256` for a body that is not hashed as a whole before it is sent. */
export const UNSIGNED_FORMS: ReadonlySet<string> = new Set(['UNSIGNED-PAYLOAD', 'STREAMING-UNSIGNED-PAYLOAD-TRAILER']);

const CHUNK_SIGNED_FORMS = [
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
  'STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD',
  'STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER',
] as const;
export type ChunkSignedForm = (typeof CHUNK_SIGNED_FORMS)[number];

/** The forms whose chunks each carry a signature. */
export function isChunkSignedForm(value: string): value is ChunkSignedForm {
  return CHUNK_SIGNED_FORMS.some((form) => form === value);
}
