import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { findAccount } from '../../store/accounts.ts';
import type { Actor } from '../../store/active_users.ts';
import { insertFlow, type OAuthFlowRow } from '../../store/oauth_flows.ts';
import type { Caller } from '../../kernel/caller.ts';
import { sha256Base64Url } from '../../kernel/encoding.ts';
import { checkWritable } from './oauth_subject.ts';
import { type HeldCredential, readHeld } from './oauth_tokens.ts';
import { nowSeconds, type ServiceContext } from '../../kernel/service_context.ts';

/** An authorisation that is starting. */
interface NewFlow {
  readonly id: string;
  readonly grant: OAuthFlowRow['grant'];
  readonly redirectUri: string | null;
  /** The verifier, or the device's code. */
  readonly secret: Secret;
  readonly seconds: number;
  readonly intervalSeconds: number;
}

/** Stores the start of an authorisation with a hash of its client, and returns when it expires. */
export async function beginFlow(
  context: ServiceContext,
  caller: Caller,
  { subject, credential }: HeldCredential,
  flow: NewFlow,
): Promise<string> {
  const { secret, seconds, ...noted } = flow;
  const connectorId = subject.id;
  const now = nowSeconds(context);
  const expiresAt = now + seconds;
  const value = new Secret(`${await clientHash(credential)}.${secret.reveal()}`);
  const sealed = await context.vault.seal(sealPlace({ id: flow.id, connectorId }), value);
  const nextPollAt = now + flow.intervalSeconds;
  const row = { ...noted, connectorId, userId: caller.userId, sealed, expiresAt, nextPollAt };
  const written = await context.database.write(insertFlow(context.database, row, now));
  if (!written.ok) throw new Error('two authorisations have the same id');
  return new Date(expiresAt * 1000).toISOString();
}

/** What is needed to complete an authorisation. */
interface ResumedFlow {
  /** Who started it, with the role that it is continued with. */
  readonly by: Actor;
  readonly held: HeldCredential;
  /** The verifier, or the device's code. */
  readonly secret: Secret;
}

/**
 * Continues an authorisation if its user may still change the connector or server, and the client is the same: a code
 * of one provider is never sent to another.
 */
export async function resumeFlow(context: ServiceContext, flow: OAuthFlowRow): Promise<Result<ResumedFlow, string>> {
  const user = (await findAccount(context.database, flow.userId))?.user;
  if (user === undefined || user.suspendedAt !== null) return err(NO_USER);
  const { id: userId, enterpriseId, role } = user;
  const by = { userId, role };
  const writable = await checkWritable(context, { ...by, enterpriseId }, flow.connectorId);
  if (!writable.ok) return err(writable.error.message);
  const held = await readHeld(context, flow.connectorId);
  if (!held.ok) return err(held.error.message);
  const secret = await openFlow(context, flow, await clientHash(held.value.credential));
  return secret === null ? err(OTHER_CLIENT) : ok({ by, held: held.value, secret });
}

/** Null if the flow was started for another client. */
async function openFlow(context: ServiceContext, flow: OAuthFlowRow, client: string): Promise<Secret | null> {
  const value = await context.vault.open(sealPlace(flow), flow.sealed);
  if (value === null) {
    throw Object.assign(new Error('the vault cannot open an authorisation'), { code: 'vault_entry_damaged' });
  }
  const prefix = `${client}.`;
  return value.reveal().startsWith(prefix) ? new Secret(value.reveal().slice(prefix.length)) : null;
}

/** A hash of the client with its URLs and scopes. */
function clientHash({ client }: HeldCredential['credential']): Promise<string> {
  return sha256Base64Url(client ?? '');
}

/** The vault place of an authorisation in progress. */
export function sealPlace({ id, connectorId }: Pick<OAuthFlowRow, 'id' | 'connectorId'>) {
  return { owner: connectorId, path: `oauth-flow/${id}`, version: 1 };
}

const NO_USER = 'the user who started this authorisation no longer exists';
const OTHER_CLIENT = 'the client of this connector or server was changed meanwhile: start again';
