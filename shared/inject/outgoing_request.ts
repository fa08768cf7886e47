import type { Refusal } from '../model/refusal.ts';
import type { Result } from '../model/result.ts';
import type { HeaderField } from '../net/http1_head.ts';

/** A decrypted request about to be re-issued: origin-form target, fields already without the hop-by-hop ones. */
export interface OutgoingRequest {
  readonly method: string;
  readonly target: string;
  /** The host the connection goes to, as the tunnel was opened for it. */
  readonly host: string;
  readonly fields: readonly HeaderField[];
}

/** What is known of the request body when the credential is written. */
export type PayloadBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'bytes'; readonly chunks: readonly Uint8Array[] }
  | { readonly kind: 'stream' };

type HashSource = string | ArrayBuffer | ArrayBufferView;

/** SHA-256 as the signer takes it: a constructor, keyed when it gets a secret (HMAC). Strings are hashed as UTF-8. */
export type HashPort = new (secret?: HashSource) => {
  update(data: HashSource): void;
  digest(): Promise<Uint8Array>;
};

/** Re-writes a request body as it passes, length unchanged. A refusal ends the request: nothing more may be sent. */
export interface BodyTransform {
  push(data: Uint8Array): Promise<BodyTransformStep>;
  /** Called at the end of the client's body; refuses when that came too early. */
  end(): Promise<BodyTransformStep>;
}

export type BodyTransformStep = Result<readonly Uint8Array[], Refusal>;

/** A request that holds its credential. With `bodyTransform`, the body has to pass through it on its way out. */
export interface InjectedRequest extends OutgoingRequest {
  readonly bodyTransform?: BodyTransform;
}
