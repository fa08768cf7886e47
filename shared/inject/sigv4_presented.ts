import { fieldValues } from '../net/http/http1_head.ts';
import type { OutgoingRequest } from './outgoing_request.ts';
import { nameOf, pairsOf, valueOf } from './query_pairs.ts';
import type { InjectionOf, Presented } from './scheme_adapter.ts';

/**
 * Whose signature a request carries. A key is ours when it is the binding's access key id or the sentinel: a client signs
 * with those and a placeholder secret, and the signature is replaced. A URL presigned with any other key is foreign.
 */
export function findPresentedSignature(
  injection: InjectionOf<'sigv4-resign'>,
  request: OutgoingRequest,
  sentinel: string | null,
): Presented {
  const isOurs = (key: string | null): boolean => key !== null && (key === injection.accessKeyId || key === sentinel);
  const ours = sentinel === null ? 'foreign' : 'sentinel';
  const presigned = listPresignedKeys(request.target);
  if (presigned.length > 0) return presigned.every(isOurs) ? ours : 'foreign_presigned';
  const values = fieldValues(request.fields, 'authorization');
  if (values.length === 0) return 'absent';
  return values.every((value) => isOurs(headerKey(value))) ? ours : 'foreign';
}

/** Whether the target is a signed URL, in any of the forms that S3 and the stores like it know. */
export function isPresigned(target: string): boolean {
  return listPresignedKeys(target).length > 0;
}

/** Where each form of signed URL has its signature, and where its key; names in lower case. */
const PRESIGNED_FORMS: ReadonlyMap<string, string> = new Map([
  ['x-amz-signature', 'x-amz-credential'],
  ['signature', 'awsaccesskeyid'],
  ['x-goog-signature', 'x-goog-credential'],
]);

/** The access keys that a signed URL names (null: a signature without one); none when the target is not signed. */
function listPresignedKeys(target: string): (string | null)[] {
  const pairs = pairsOf(target);
  const names = pairs.map((pair) => nameOf(pair).toLowerCase());
  const keys: (string | null)[] = [];
  for (const [signature, credential] of PRESIGNED_FORMS) {
    if (!names.includes(signature)) continue;
    const ofForm = pairs.filter((_pair, index) => names[index] === credential);
    if (ofForm.length > 0) keys.push(...ofForm.map((pair) => keyOf(valueOf(pair))));
    else if (signature !== 'signature') keys.push(null);
  }
  return keys;
}

/** The access key id of a version 4 or 2 Authorization value; null for any other. */
function headerKey(value: string): string | null {
  const version4 = /^AWS4-[A-Z0-9-]+\s.*?\bCredential=([^/,\s]+)\//i.exec(value);
  if (version4 !== null) return version4[1] ?? null;
  return /^AWS ([^:\s]+):/.exec(value)?.[1] ?? null;
}

/** A credential scope's access key id: everything before its first slash. */
function keyOf(credential: string): string {
  return credential.split('/', 1)[0] ?? '';
}
