import { z } from 'zod';
import { engineNameOf, ENGINES } from '../../sandbox/engine/engine_address.ts';
import { ENGINE_ENDPOINT } from '../../shared/model/settings.ts';
import { EGRESS_MODES, MAX_ALLOWED_HOSTS } from '../../shared/model/egress.ts';
import { MAX_SESSION_SECONDS } from '../../shared/model/session_length.ts';
import { auditHead } from '../../shared/wire/audit_heads.ts';
import {
  allowedHostText,
  chosenSecrets,
  credentialRefText,
  hostPatternText,
  byteLimit,
  requestLimit,
} from '../../shared/wire/host_binding_fields.ts';
import { narrowing } from '../../shared/wire/sources/narrowing.ts';
import { planLockContent } from '../../shared/wire/plan/plan_lock.ts';
import { id, imageId, line } from '../../shared/wire/primitives.ts';
import { hostSandbox } from '../session/sandbox.ts';

const MAX_UNSEALED = 64;
const MAX_NAMED_MCP_SERVERS = 64;
const MAX_IMAGE_CHARACTERS = 512;
const MAX_REASON_CHARACTERS = 500;

const pid = z
  .int()
  .min(1)
  .max(2 ** 31 - 1);
const image = line(MAX_IMAGE_CHARACTERS).min(1, 'is empty: give the name of the image');
const reason = line(MAX_REASON_CHARACTERS).trim().min(1, 'is empty: say why the proxy cannot add it');

const unsealedFields = {
  env: z
    .string()
    .max(128)
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not a valid name of an environment variable'),
  reference: credentialRefText,
  host: allowedHostText,
  reason,
};

const sandboxInput = z.strictObject({
  mode: z.enum(ENGINES),
  image,
  image_id: imageId,
  runtime: z
    .strictObject({
      program: z.enum(ENGINES),
      endpoint: z.string().max(512).regex(ENGINE_ENDPOINT, 'is no engine on this machine (unix:///... or podman:/...)'),
    })
    .refine(({ program, endpoint }) => program === engineNameOf(endpoint), 'is the endpoint of another program'),
  detached: z.boolean(),
  egress: z.enum(EGRESS_MODES),
  unsealed: z.array(z.strictObject(unsealedFields)).max(MAX_UNSEALED).default([]),
});

/** `POST /v1/sandbox-proxy/sessions`. */
/** The most secrets that a session narrows: each is minted when it starts. */
const MAX_SCOPES = 20;

export const sessionInput = z.strictObject({
  name: z.string().trim().min(1).max(100).optional(),
  /** Where it was started; shown to whoever approves its requests. */
  folder: z.string().min(1).max(4_096).optional(),
  /** The session starts with at least this policy version. */
  min_policy_version: z.number().int().min(0).optional(),
  /** Without it the session lives as long as its owner; without an owner, for a day. */
  ttl_seconds: z.number().int().min(1).max(MAX_SESSION_SECONDS).optional(),
  /** The session ends with this process. */
  owner: z.strictObject({ pid, started: z.string().max(64).nullable() }).optional(),
  sandbox: sandboxInput.optional(),
  /** Instead of a container. It needs an owner. */
  host_sandbox: hostSandbox.optional(),
  /** Patterns. The session reaches only these, bound hosts and hosts of active connectors. */
  allowed_hosts: z.array(hostPatternText).max(MAX_ALLOWED_HOSTS).optional(),
  /** Allowed too, and they may lead to private addresses: exact hosts that a person typed for this session. */
  named_hosts: z.array(allowedHostText).max(MAX_ALLOWED_HOSTS).optional(),
  /** Patterns. The session may send plain `http://` requests to these, without a credential. */
  plain_http_hosts: z.array(hostPatternText).max(MAX_ALLOWED_HOSTS).optional(),
  /** These too, and in a sealed session they may lead to private addresses: exact hosts that a person typed for this session. */
  plain_http_named: z.array(allowedHostText).max(MAX_ALLOWED_HOSTS).optional(),
  /** Patterns with a port other than 443. The session reaches these too, whatever its egress. */
  other_port_hosts: z.array(hostPatternText).max(MAX_ALLOWED_HOSTS).optional(),
  /** These too, and in a sealed session they may lead to private addresses: exact hosts that a person typed for this session. */
  other_port_named: z.array(allowedHostText).max(MAX_ALLOWED_HOSTS).optional(),
  /** It reaches nothing; the sidecar itself answers its probes, and records none. */
  self_test: z.literal(true).optional(),
  /** In order: the secrets to use where a host is bound to several, with who chose each. */
  use_secrets: chosenSecrets.default([]),
  /** What the session does less with minted secrets. */
  scopes: z
    .array(z.strictObject({ reference: credentialRefText, narrowing }))
    .max(MAX_SCOPES)
    .default([]),
  /** How many of its requests may get a credential, on this machine, and with how many bytes; without them, any number. */
  requests_per_minute: requestLimit.optional(),
  requests_per_day: requestLimit.optional(),
  bytes_per_day: byteLimit.optional(),
  /** Names or ids of the MCP servers that the session's token may use. */
  mcp_servers: z.array(line(128).min(1)).max(MAX_NAMED_MCP_SERVERS).default([]),
  /** A person gave the agent in the sandbox svc's MCP gateway: the session's token may use every server. */
  every_mcp_server: z.literal(true).optional(),
  /** Variables with a credential that a person told the launch to pass on; the reference is known for a stored one. */
  kept_env: z
    .array(z.strictObject({ env: unsealedFields.env, reference: credentialRefText.optional() }))
    .max(MAX_UNSEALED)
    .default([]),
  /** The login that it is started for, and what its program gets in place of the access token. */
  login: z
    .strictObject({
      id: id('plg'),
      placeholder: z
        .string()
        .min(16)
        .max(300)
        .regex(/^[!-~]+$/, 'must be visible ASCII'),
    })
    .optional(),
  /** The container or the sandbox runs this MCP server: it reaches the hosts that the consent to the server names, and nothing else. */
  mcp_server: id('mcp').optional(),
  /** The session belongs to a plan: it has no token of its own. */
  plan: z.strictObject({ lock: z.string().min(1) }).optional(),
});
export type SessionInput = z.output<typeof sessionInput>;

/** `PUT /v1/sandbox-proxy/sessions/{id}/container`: the engine's full id. */
export const containerInput = z.strictObject({
  container_id: z.string().regex(/^[0-9a-f]{64}$/, 'is not a full container id (64 hex digits)'),
});

/** `POST /v1/sandbox-proxy/sessions/{id}/listener`: the container's first process, by its pid on this machine. */
export const listenerInput = z.strictObject({ pid, relay: z.boolean().default(false) });
export type ListenerInput = z.output<typeof listenerInput>;

/** `POST /v1/sandbox-proxy/disabled`. */
export const disabledInput = z.strictObject({
  reason: z.enum(['user_opt_out', 'preflight_failed', 'unsupported_sandbox_mode']),
  mode: z.enum(['docker', 'podman', 'none']),
  image: image.optional(),
});
export type DisabledInput = z.output<typeof disabledInput>;

/** `POST /v1/sandbox-proxy/requests`: only what the lookup needs, so nothing else can be recorded. */
export const boundaryInput = z.strictObject({
  connector_fqn: z.string().min(1).max(128),
  operation: z.string().min(1).max(128),
  method: z.string().regex(/^[A-Z]{1,16}$/, 'is not a valid method: write it in upper case, such as GET'),
  upstream_url: z.string().max(16_384),
});
export type BoundaryInput = z.output<typeof boundaryInput>;

/** `POST /v1/sandbox-proxy/unsealed`. */
export const unsealedInput = z.strictObject({ session_id: id('ses'), ...unsealedFields });
export type UnsealedInput = z.output<typeof unsealedInput>;

/** `POST /v1/audit-log/accept`: the chain, and the remembered head that the confirming person saw. */
export const auditAcceptInput = auditHead;
export type AuditAcceptInput = z.output<typeof auditAcceptInput>;

/** `POST /v1/sandbox-proxy/plan-locks`. */
export const planLockInput = z.strictObject({ content: planLockContent });
export type PlanLockInput = z.output<typeof planLockInput>;

/** `POST /v1/sandbox-proxy/step-scopes`: the reach comes from the session's lock, never from the caller. */
export const stepScopeInput = z.strictObject({ session_id: id('ses'), step_id: z.string().min(1).max(256) });
export type StepScopeInput = z.output<typeof stepScopeInput>;

/** `POST /v1/sandbox-proxy/step-starts`: the result of starting a step. Its reach is in the session's lock. */
export const stepStartInput = z.strictObject({
  session_id: id('ses'),
  step_id: z.string().min(1).max(256),
  /** The scope that it runs under. */
  scope_id: id('scp').optional(),
  /** True once its command runs in the container as the container's user. */
  began: z.boolean(),
});
export type StepStartInput = z.output<typeof stepStartInput>;
