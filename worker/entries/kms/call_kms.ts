import { parseJsonBytes } from '../../../shared/model/json.ts';
import type { Outbound, OutboundRequest } from '../../kernel/outbound.ts';
import { ProgramError } from '../program_error.ts';

export interface KmsOptions {
  readonly outbound: Outbound;
  /** In place of the cloud's own endpoint. */
  readonly url?: string | undefined;
  readonly credentialsFile?: string | undefined;
  readonly now: () => number;
}

/** A start waits for it. */
const LIMITS = { maxReplyBytes: 256 * 1024, timeoutMs: 15_000 };

export interface KmsReply {
  readonly host: string;
  readonly status: number;
  readonly body: unknown;
}

export async function callKms(outbound: Outbound, request: Omit<OutboundRequest, 'limits'>): Promise<KmsReply> {
  const called = await outbound.call({ ...request, limits: LIMITS });
  if (!called.ok) throw unavailable(called.error.message);
  const { status, body } = called.value;
  return { host: new URL(request.url).host, status, body: parseJsonBytes(body) };
}

export function unavailable(why: string): ProgramError {
  return new ProgramError('vault_kms_unavailable', `the KMS that wraps the master key gives no key: ${why}`);
}

/** Only the code of an error is passed on: its text may say more than it should. */
export function refusedBy(
  { host, status }: KmsReply,
  code: string,
  why: Readonly<Record<string, string>>,
): ProgramError {
  const shown = code.replaceAll(/[^\w.]/g, '').slice(0, 64);
  const advice = Object.hasOwn(why, shown) ? ` (${why[shown]})` : '';
  return unavailable(`${host} refused with status ${status}${shown === '' ? '' : `: ${shown}`}${advice}`);
}
