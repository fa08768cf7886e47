/** The parts that make two requests identical: an approval covers one identical request. */
export interface FingerprintedRequest {
  readonly fqn: string;
  readonly operation: string;
  readonly method: string;
  readonly host: string;
  /** The path with its query, as sent. */
  readonly target: string;
  readonly contentType: string;
  readonly body: readonly Uint8Array[];
}

/** SHA-256, in hex. Every part is preceded by its length, so that different requests cannot form the same text. */
export async function requestFingerprint(request: FingerprintedRequest): Promise<string> {
  const { fqn, operation, method, host, target, contentType, body } = request;
  const texts = [fqn, operation, method, host, target, contentType].map((text) => new TextEncoder().encode(text));
  const parts = [...texts, joinChunks(body)];
  const framed = parts.flatMap((part) => [lengthOf(part), part]);
  const digest = await crypto.subtle.digest('SHA-256', joinChunks(framed));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * What a grant covers: requests of one operation with the same path inputs, whatever their queries and bodies are. Null for
 * a GraphQL document, whose inputs are all in the body.
 */
export async function requestScope(
  { fqn, operation, method, host }: Pick<FingerprintedRequest, 'fqn' | 'operation' | 'method' | 'host'>,
  path: string,
  isGraphql: boolean,
): Promise<string | null> {
  if (isGraphql) return null;
  return requestFingerprint({ fqn, operation, method, host, target: path, contentType: '', body: [] });
}

function lengthOf(part: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(part.length));
  return bytes;
}

function joinChunks(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(chunks.reduce((total, chunk) => total + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
