import { type ConnectorSummary, revocationReply } from '../../shared/wire/connectors/connectors.ts';
import { CliError } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import type { Printer } from '../terminal/output.ts';

/** What became of the tokens of a connector at their provider. */
export interface Revoked {
  readonly fqn: string;
  /** `not_named`: svc does not know where. */
  readonly outcome: 'revoked' | 'failed' | 'not_named';
  /** Why they stay valid, and what to do; null if they do not. */
  readonly left: string | null;
}

/**
 * Has the tokens of a connector revoked at their provider, before svc deletes them (decision 0068). Never fails: they are deleted anyway.
 * Null if it has none.
 */
export async function revokeAtProvider(
  client: HttpClient,
  { id, fqn, credential }: Pick<ConnectorSummary, 'id' | 'fqn' | 'credential'>,
  signal?: AbortSignal,
): Promise<Revoked | null> {
  const { kind, updated_at: storedAt, token_url: tokenUrl } = credential;
  if (kind !== 'oauth2' || storedAt === null || tokenUrl === null) return null;
  const left = (outcome: 'failed' | 'not_named', why: string): Revoked => {
    const message = `the tokens of ${fqn} stay valid at ${new URL(tokenUrl).host}${why}: end the login in the settings of the account`;
    return { fqn, outcome, left: message };
  };
  try {
    const options = signal === undefined ? {} : { signal };
    const { outcome, message } = await client.call(
      'POST',
      `/v1/connectors/${id}/credential/revoke`,
      revocationReply,
      options,
    );
    if (outcome === 'nothing') return null;
    if (outcome === 'revoked') return { fqn, outcome, left: null };
    return left(
      outcome,
      outcome === 'failed' ? `, because ${message}` : ', because svc does not know where to revoke them',
    );
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return left('failed', `, because ${error.message}`);
  }
}

export function printRevoked(print: Pick<Printer, 'note' | 'warn'>, revoked: Revoked | null): void {
  if (revoked === null) return;
  if (revoked.left === null) print.note(`The provider has revoked the tokens of ${revoked.fqn}.`);
  else print.warn(revoked.left);
}
