import { narrowing } from './sources/narrowing.ts';
import { z } from 'zod';
import { MAX_VAULT_PATH_LENGTH } from '../model/vault_path.ts';
import { acknowledgedHead } from './audit_heads.ts';
import { clientCertificateRecord } from './hosts/client_certificates.ts';
import { hostBindingRecord } from './host_binding.ts';
import { allowedHostText } from './host_binding_fields.ts';
import { reviewedTools } from './mcp/mcp_tools.ts';
import { id, line, owner, time } from './primitives.ts';
import { vaultPath } from './secrets.ts';

/**
 * The authenticated channel between a sidecar and the control plane (design section 6).
 *
 * Every call carries `Authorization: Bearer <JWT>`: header `{alg: "EdDSA", typ: CALL_TYP}`, claims {@link callClaims},
 * signed by the sidecar. Every reply that the sidecar acts on is a compact JWS by the control plane's key, with the `typ`
 * named here. The sidecar checks the signature, the type, its own id and, if there is one, its nonce or request id.
 */
export const CALL_TYP = 'svc-sidecar+jwt';
export const SNAPSHOT_TYP = 'svc-snapshot+jws';
export const SNAPSHOT_PROOF_TYP = 'svc-snapshot-proof+jws';
export const CREDENTIALS_TYP = 'svc-credentials+jws';
export const EVENTS_TYP = 'svc-events+jws';
export const REVOCATION_TYP = 'svc-revocation+jws';
/** `AUDIT_HEADS_TYP` is in `audit_heads.ts`. See `approvals.ts`. */
export const APPROVAL_TYP = 'svc-approval+jws';

/** The longest life of a call's token, and the largest allowed clock difference. */
export const MAX_CALL_SECONDS = 60;
/** A snapshot may be used this long after the last successful poll. */
export const SNAPSHOT_SECONDS = 24 * 3600;
export const MAX_WAIT_SECONDS = 25;
/** A credential reply is valid for this long, only for its way to the sidecar. */
export const CREDENTIALS_REPLY_SECONDS = 60;

/** The reply header that authenticates a 304: a JWS (`SNAPSHOT_PROOF_TYP`) of {@link snapshotProof}. */
export const SNAPSHOT_PROOF_HEADER = 'svc-snapshot-proof';
/** The request header of a poll: the fields beside the first version's that the sidecar understands. Others are left out, because an unknown field makes a sidecar refuse the whole snapshot. */
export const SNAPSHOT_KNOWS_HEADER = 'svc-snapshot-knows';
export const SNAPSHOT_KNOWS_INACTIVE = 'inactive_connectors';
export const SNAPSHOT_KNOWS_TUNNELS = 'tunnel_hosts';
/**
 * A second header for words that earlier control planes do not know: they compare the first one's whole value. The words are
 * separated by commas.
 */
export const SNAPSHOT_KNOWS_ALSO_HEADER = 'svc-snapshot-knows-also';
/** Bindings and connectors may have hosts with a port. */
export const SNAPSHOT_KNOWS_OTHER_PORTS = 'other_ports';
/** The region of a binding may be a set. */
export const SNAPSHOT_KNOWS_REGION_SETS = 'region_sets';
/** Bindings may have a limit of bytes. */
export const SNAPSHOT_KNOWS_BYTE_LIMITS = 'byte_limits';
/** The reviewed tools of MCP servers. */
export const SNAPSHOT_KNOWS_TOOLS = 'mcp_tools';
/** The client certificates of the user. */
export const SNAPSHOT_KNOWS_CERTIFICATES = 'client_certificates';
/** The reply header of every change to bindings and secrets: the first snapshot version that includes it. */
export const POLICY_VERSION_HEADER = 'svc-policy-version';

const base64urlSha256 = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/** The claims of a call. */
export const callClaims = z.strictObject({
  iss: id('sdc'),
  /** The control plane's id. */
  aud: id('cpl'),
  htm: z.string(),
  /** The path and query as sent. */
  htu: z.string(),
  /** base64url of the SHA-256 of the body, which may be empty. */
  bd: base64urlSha256,
  iat: z.number().int(),
  exp: z.number().int(),
  /** Random for each call; a POST's is accepted once. Replies name it as `nonce`. */
  jti: z.string().min(16).max(64),
});
export type CallClaims = z.infer<typeof callClaims>;

/** `GET /v1/sidecar/snapshot?wait=25`. */
export const snapshotQuery = z.strictObject({ wait: z.coerce.number().int().min(0).max(MAX_WAIT_SECONDS).default(0) });

/** The payload of the snapshot's JWS. It contains no secret. Strict: a sidecar must not act on a snapshot with fields that it does not know. */
export const snapshotPayload = z.strictObject({
  sidecar_id: id('sdc'),
  /** The call's jti. */
  nonce: z.string(),
  /** Never goes back. */
  version: z.number().int().min(0),
  issued_at: time,
  expires_at: time,
  host_bindings: z.array(hostBindingRecord),
  /** Read with `readSnapshotConnectors`: an invalid one makes connector requests refused, and leaves the bindings. */
  connectors: z.array(z.unknown()),
  /** Installed ones that never had a credential, for a sidecar that knows the field. No request is theirs; a run of one names what it lacks. */
  inactive_connectors: z.array(z.unknown()).optional(),
  /** The hosts and patterns that are not intercepted, for a sidecar that knows the field. One that cannot be read tunnels nothing. */
  tunnel_hosts: z.array(z.string()).optional(),
  /** The user's client certificates, without a key, for a sidecar that knows the field. One that does not sends none. */
  client_certificates: z.array(clientCertificateRecord).optional(),
  /** Read with `readSnapshotMcpServers`: an invalid one is left out, and the others stay. */
  mcp_servers: z.array(z.unknown()).default([]),
  /** The tools that may be listed and called, for a sidecar that knows the field. Without the field, every tool may be. */
  mcp_tools: z.array(reviewedTools).optional(),
  /** Every stored credential that the bindings, connectors and MCP servers refer to. */
  credentials: z.array(
    z.object({
      owner,
      path: z.string(),
      version: z.string(),
      /** The value is minted, so that its release may take as long as a provider. */
      minted: z.boolean().optional(),
      /** A program on the sidecar's own machine gives the value, if a person consented to it there. */
      borrowed: z.boolean().optional(),
    }),
  ),
});
export type SnapshotPayload = z.infer<typeof snapshotPayload>;

/** The payload of a 304's proof: the snapshot of this version is still the newest. */
export const snapshotProof = z.object({
  sidecar_id: id('sdc'),
  nonce: z.string(),
  version: z.number().int().min(0),
  issued_at: time,
  expires_at: time,
});
export type SnapshotProof = z.infer<typeof snapshotProof>;

/** The payload of the JWS in `details.proof` of a 401 `sidecar_revoked`. */
export const revocationProof = z.object({ sidecar_id: id('sdc'), nonce: z.string(), revoked_at: time });

const credentialRef = z.strictObject({ owner, path: z.string().min(1).max(MAX_VAULT_PATH_LENGTH) });

/**
 * `POST /v1/sidecar/credentials`: returns only credentials in this sidecar's snapshot. With a narrowing, the value is minted for
 * this call and stored nowhere. An earlier control plane refuses such a call.
 */
export const credentialsRequest = z
  .strictObject({
    request_id: z.string().min(16).max(64),
    credentials: z
      .array(credentialRef.extend({ narrowing: narrowing.optional() }))
      .min(1)
      .max(100),
  })
  .meta({ id: 'CredentialsRequest' });
export type CredentialsRequest = z.infer<typeof credentialsRequest>;

const MAX_REASON_CHARACTERS = 500;

/**
 * `POST /v1/sidecar/unsealed`: one credential that a program gets in plaintext, because no binding can complete its
 * requests. It must belong to the sidecar's own user; a binding is not required. `host` and `reason` go into the audit log.
 * The reply is like that for credentials: a JWS (`CREDENTIALS_TYP`) of {@link credentialsPayload} with one credential or one
 * missing.
 */
export const unsealedRequest = z
  .strictObject({
    request_id: z.string().min(16).max(64),
    reference: z.strictObject({ owner: z.enum(['personal']), path: vaultPath }),
    host: allowedHostText,
    reason: line(MAX_REASON_CHARACTERS).trim().min(1, 'is empty: say why the proxy cannot add the credential'),
  })
  .meta({ id: 'UnsealedRequest' });
export type UnsealedRequest = z.output<typeof unsealedRequest>;

/** The payload of the credential reply's JWS. */
export const credentialsPayload = z.object({
  sidecar_id: id('sdc'),
  request_id: z.string(),
  expires_at: time,
  credentials: z.array(
    z.object({
      owner,
      path: z.string(),
      version: z.string(),
      /** A compact JWE (ECDH-ES, A256GCM) to the sidecar's receiving key; its plaintext is JSON {@link sealedCredential}. */
      sealed: z.string(),
      /** For an access token or another minted value: it must not be used from this time on. */
      expires_at: time.optional(),
      /** The value was minted for the narrowing of the call. */
      narrowed: z.literal(true).optional(),
    }),
  ),
  /** Not stored, or not in this sidecar's snapshot; the reply does not tell which. */
  missing: z.array(z.object({ owner, path: z.string() })),
  /** Oauth2 credentials without a usable access token, and secrets whose source gives no value; `reason` is the refusal's. */
  unavailable: z
    .array(
      z.object({
        owner,
        path: z.string(),
        reason: z.enum(['reauthorisation_required', 'credential_unavailable']),
        message: z.string(),
      }),
    )
    .default([]),
});
export type CredentialsPayload = z.infer<typeof credentialsPayload>;
export const sealedCredential = z.strictObject({
  value: z.string(),
  /** Of a key set of AWS, whose secret access key is the value. A sidecar that does not know the field refuses the credential. */
  signed_as: z.strictObject({ access_key_id: z.string(), session_token: z.string() }).optional(),
});
export type SealedCredential = z.infer<typeof sealedCredential>;

const MAX_EVENTS_PER_CALL = 1_000;

/**
 * `POST /v1/sidecar/events`: each event is an `AuditEvent`, stamped with the sidecar's id. Events are checked one by one, so
 * that a bad one does not hold up the others; the whole body is at most 1 MiB.
 */
export const eventsRequest = z
  .strictObject({ events: z.array(z.unknown()).min(1).max(MAX_EVENTS_PER_CALL) })
  .meta({ id: 'EventsRequest' });

/**
 * The payload of the JWS that answers it. A sidecar deletes an event only on the control plane's signed reply to that very
 * call, so that nothing in between can make events vanish by claiming that they arrived.
 */
export const eventsPayload = z.object({
  sidecar_id: id('sdc'),
  /** The call's jti. */
  nonce: z.string(),
  /** The ids that are in the log now, including earlier ones: sending an event again is harmless. */
  accepted: z.array(z.string()),
  /** Events that this version never accepts; the sidecar may offer them to a later one. `index` is the position in the request. */
  rejected: z.array(z.object({ index: z.number().int().min(0), id: z.string().nullable(), message: z.string() })),
  /** Where the sidecar's chain ends now; absent from an older control plane. */
  head: acknowledgedHead.optional(),
});
export type EventsPayload = z.infer<typeof eventsPayload>;
