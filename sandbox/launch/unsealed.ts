import { findSteering } from '../../shared/model/shown_text.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { formatVaultReference, parseVaultReference } from '../../shared/model/vault_path.ts';
import { normaliseHostOnPort } from '../../shared/net/host.ts';
import { isReadByEngine } from '../engine/engine_cli.ts';
import { mayHoldSentinel } from './session_environment.ts';

/** A credential whose value goes into the container, because no scheme can seal it (specification section 2). */
export interface UnsealedCredential {
  readonly env: string;
  /** `vault://PATH` */
  readonly reference: string;
  readonly host: string;
  /** Why it cannot be sealed, in the user's words; it goes into the audit log. */
  readonly reason: string;
}

const MAX_REASON_LENGTH = 500;
const FORM = 'write ENV=vault://PATH,host=HOST,reason=TEXT';

/** Parses `--unsealed`. The reason comes last and may contain commas. */
export function parseUnsealed(text: string): Result<UnsealedCredential, string> {
  const match = /^([^=]*)=([^,]*),host=([^,]*),reason=([^]*)$/.exec(text);
  if (match === null) return err(`has another form (not shown, it may hold a secret): ${FORM}`);
  const [, env = '', reference = '', host = '', reason = ''] = match;
  if (!mayHoldSentinel(env) || isReadByEngine(env)) {
    return err(`names the variable ${JSON.stringify(env)}, which cannot hold a credential: choose another name`);
  }
  const path = parseVaultReference(reference);
  if (!path.ok) return err(`for ${env}: ${path.error.message}`);
  const normalised = normaliseHostOnPort(host);
  if (!normalised.ok) return err(`for ${env}: host ${normalised.error.message}`);
  const why = reason.trim();
  if (why === '' || why.length > MAX_REASON_LENGTH || findSteering(why, false) !== null) {
    return err(
      `for ${env}: reason must say in 1 to ${MAX_REASON_LENGTH} characters of one line why it cannot be sealed`,
    );
  }
  return ok({ env, reference: formatVaultReference(path.value), host: normalised.value, reason: why });
}
