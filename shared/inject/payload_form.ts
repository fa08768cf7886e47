/** Values of `x-amz-content-sha256` for a body that is not hashed as a whole before it is sent. */
export const UNSIGNED_FORMS: ReadonlySet<string> = new Set(['UNSIGNED-PAYLOAD', 'STREAMING-UNSIGNED-PAYLOAD-TRAILER']);

export type ChunkSignedForm = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD' | 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER';

/** The forms whose chunks each carry a signature. */
export function isChunkSignedForm(value: string): value is ChunkSignedForm {
  return value === 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD' || value === 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER';
}
