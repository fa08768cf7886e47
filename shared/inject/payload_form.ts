/** Values of `x-amz-content-sha256` that ask for a body which is not hashed as a whole before it is sent. */
export const UNSIGNED_FORMS: ReadonlySet<string> = new Set(['UNSIGNED-PAYLOAD', 'STREAMING-UNSIGNED-PAYLOAD-TRAILER']);

/** The forms whose chunks each carry a signature. */
export const CHUNK_SIGNED_FORMS: ReadonlySet<string> = new Set([
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
]);

export const SIGNED_AS_IT_PASSES: ReadonlySet<string> = new Set([...UNSIGNED_FORMS, ...CHUNK_SIGNED_FORMS]);
