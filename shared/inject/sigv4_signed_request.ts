import type { Refusal } from '../model/refusal.ts';
import type { Result } from '../model/result.ts';
import type { OutgoingRequest } from './outgoing_request.ts';
import type { SignedPayload } from './sigv4_payload.ts';

/** A request with its new signature, which also seeds the first chunk's signature. */
interface SignedRequest {
  readonly request: OutgoingRequest;
  readonly payload: SignedPayload;
  readonly signature: string;
}

export type SignResult = Result<SignedRequest, Refusal>;
