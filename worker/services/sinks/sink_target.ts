import { z } from 'zod';
import { ROLES } from '../../../shared/model/role.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { AuditSinkRow } from '../../store/audit/audit_sinks.ts';
import type { SealPlace, Vault } from '../../kernel/vault.ts';

/** Where a sink sends to, with its secrets. It is sealed as a whole, because a URL may contain a password. */
const sinkTarget = z.strictObject({
  url: z.string(),
  header: z.strictObject({ name: z.string(), value: z.string() }).optional(),
  /** Of mail: a role or a group. */
  to: z.strictObject({ role: z.enum(ROLES).optional(), groupId: z.string().optional() }).optional(),
  /** Of syslog: the receiver closes without a `close_notify`. */
  acceptsPlainClose: z.boolean().optional(),
  /** Of a bucket. */
  aws: z.strictObject({ region: z.string(), accessKeyId: z.string(), secretAccessKey: z.string() }).optional(),
  /** As in Standard Webhooks: `whsec_` and base64. */
  signing: z.string().optional(),
  /** The signing secret before a rotation, which signs too until `untilMs`. */
  previous: z.strictObject({ signing: z.string(), untilMs: z.number() }).optional(),
});
export type SinkTarget = z.infer<typeof sinkTarget>;

/** The vault place of a sink's target. */
export function sinkPlace({ enterpriseId, id }: Pick<AuditSinkRow, 'enterpriseId' | 'id'>): SealPlace {
  return { owner: enterpriseId, path: `audit-sinks/${id}`, version: 1 };
}

export function sealTarget(
  vault: Vault,
  sink: Pick<AuditSinkRow, 'enterpriseId' | 'id'>,
  target: SinkTarget,
): Promise<string> {
  return vault.seal(sinkPlace(sink), new Secret(JSON.stringify(target)));
}

/** The target of a sink; null if the vault cannot open it. */
export async function openTarget(vault: Vault, row: AuditSinkRow): Promise<SinkTarget | null> {
  const opened = await vault.open(sinkPlace(row), row.sealed);
  return opened === null ? null : sinkTarget.parse(JSON.parse(opened.reveal()));
}
