import { z } from 'zod';
import { id } from './primitives.ts';

/** How much of a body is shown. */
export const MOST_SHOWN_BYTES = 64 * 1024;
/** A sealed request: 64 KiB in which JSON escapes every byte, encrypted, in base64url. */
const MOST_SEALED_CHARACTERS = 700_000;

/** A sidecar that shows requests says so when it waits for a decision; one of an earlier version refuses a reply with views. */
export const APPROVAL_KNOWS_HEADER = 'svc-approval-knows';
export const APPROVAL_KNOWS_VIEWS = 'views';

const coordinate = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
/** A page's key of this session; its private half never leaves the page. */
const viewKey = z.strictObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: coordinate,
  y: coordinate,
});
export type ViewKey = z.output<typeof viewKey>;

/** Somebody who may decide wants to see the request. The sidecar that holds it seals it to the key. */
export const approvalView = z.strictObject({ id: id('apv'), key: viewKey });
export type ApprovalView = z.output<typeof approvalView>;

/** `POST /v1/approvals/{id}/views`. */
export const viewInput = z.strictObject({ key: viewKey }).meta({ id: 'ApprovalViewInput' });
export const createdView = z.object({ id: id('apv') }).meta({ id: 'ApprovalViewCreated' });

/** `GET /v1/approvals/{id}/views/{view}`: null until the sidecar has answered. */
export const viewParams = z.strictObject({ id: id('apr'), view: id('apv') });
export const viewReply = z
  .object({
    /** A compact JWE (ECDH-ES, A256GCM) of a {@link ShownRequest}. */
    sealed: z.string().nullable(),
  })
  .meta({ id: 'ApprovalView' });

/** `POST /v1/sidecar/approvals/{id}/views`. */
export const sealedViewInput = z
  .strictObject({
    view_id: id('apv'),
    sealed: z
      .string()
      .max(MOST_SEALED_CHARACTERS)
      .regex(/^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]+\.[\w-]+$/),
  })
  .meta({ id: 'SealedApprovalView' });

/** What is sealed: the request that waits, with its credential masked and its hidden characters written out. */
export interface ShownRequest {
  readonly approval_id: string;
  /** Of the whole request. */
  readonly fingerprint: string;
  /** `POST https://host/path?query`. */
  readonly line: string;
  readonly content_type: string;
  /** The body, at most {@link MOST_SHOWN_BYTES} of it; null if it is not text. */
  readonly text: string | null;
  /** The length of the whole body. */
  readonly bytes: number;
}
