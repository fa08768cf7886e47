import type { Refusal } from '../model/refusal.ts';
import type { Result } from '../model/result.ts';
import type { HeaderField } from '../net/http/http1_head.ts';

/** A decrypted request about to be re-issued: origin-form target, without hop-by-hop fields. */
export interface OutgoingRequest {
  readonly method: string;
  readonly target: string;
  /** The host of the connection: the one the tunnel was opened for. */
  readonly host: string;
  readonly fields: readonly HeaderField[];
}

/** What is known of the request body when the credential is written. */
export type PayloadBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'bytes'; readonly chunks: readonly Uint8Array[] }
  | { readonly kind: 'stream' };

type HashSource = string | ArrayBuffer | ArrayBufferView;

/** SHA-256 behind the signer's interface: a constructor, keyed (HMAC) if it gets a secret. Strings are hashed as UTF-8. */
export type HashPort = new (secret?: HashSource) => {
  update(data: HashSource): void;
  digest(): Promise<Uint8Array>;
};

/** Rewrites a request body in transit, length unchanged. A refusal ends the request: nothing more may be sent. */
export interface BodyTransform {
  push(data: Uint8Array): Promise<BodyTransformStep>;
  /** Called at the end of the client's body; refuses if the body ended too early. */
  end(): Promise<BodyTransformStep>;
}

export type BodyTransformStep = Result<readonly Uint8Array[], Refusal>;

/** A request with its credential. If there is a `bodyTransform`, the outgoing body has to pass through it. */
export interface InjectedRequest extends OutgoingRequest {
  readonly bodyTransform?: BodyTransform;
}
