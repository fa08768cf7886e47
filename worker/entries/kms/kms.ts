import type { KmsKey } from '../../../shared/model/kms_key.ts';
import type { Secret } from '../../../shared/model/secret.ts';

/** A key to wrap or to open, and the file for which it is: a wrapped key opens for its own file only. */
export interface KmsCall {
  readonly key: KmsKey;
  readonly file: string;
}

/** A cloud's key management service. It has the wrapping key, which never leaves it. Refuses with what a person can do. */
export interface Kms {
  /** The wrapped form of a key in base64; the answer is in base64 too. */
  wrap(call: KmsCall, plain: Secret): Promise<string>;
  unwrap(call: KmsCall, wrapped: string): Promise<Secret>;
}

/** What the wrapped key is bound to. */
export const KMS_PURPOSE = 'svc master key';
