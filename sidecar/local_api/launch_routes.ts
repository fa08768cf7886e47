import { parseVaultReference } from '../../shared/model/vault_path.ts';
import { isScoped } from '../../shared/wire/sources/narrowing.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { AuditAcceptInput, DisabledInput, UnsealedInput } from './inputs.ts';
import { FLUSH_MS, type LocalApiOptions } from './local_api_options.ts';
import { auditUnavailableError, localError, type LocalError, noSessionError } from './local_error.ts';

/** Records that a launch continues, or stops, without the proxy (specification section 6). */
export async function recordDisabled(
  { audit }: LocalApiOptions,
  { reason, mode, image }: DisabledInput,
): Promise<Result<void, LocalError>> {
  if (!audit.accepting) return err(auditUnavailableError());
  audit.record({
    type: 'sandbox.proxy.disabled',
    session_id: null,
    actor: null,
    data: {
      'svc.proxy.reason': reason,
      'svc.sandbox.mode': mode,
      ...(image !== undefined && { 'svc.sandbox.image': image }),
    },
  });
  await audit.flush(FLUSH_MS);
  return ok(undefined);
}

/** Drops the remembered head of an audit log chain that was rolled back, for a person who saw the mismatch and confirms that it was intended. */
export async function acceptMismatch(
  { audit, witness }: LocalApiOptions,
  { writer, sequence, hash }: AuditAcceptInput,
): Promise<Result<void, LocalError>> {
  if (!audit.accepting) return err(auditUnavailableError());
  const accepted = await witness.accept(writer, { sequence, hash });
  if (accepted.ok) {
    await audit.flush(FLUSH_MS);
    return ok(undefined);
  }
  if (accepted.error !== 'no_mismatch') return err(localError('control_plane_unavailable', accepted.error.message));
  return err(localError('not_found', `${writer} has no such mismatch, or it has changed: look again with svc doctor.`));
}

/** Releases a credential that a container gets in plaintext. The release is recorded before the value is sent. */
export async function releaseUnsealed(
  options: LocalApiOptions,
  input: UnsealedInput,
): Promise<Result<{ readonly value: string }, LocalError>> {
  const { audit, sessions } = options;
  const { session_id: sessionId, env, reference, host, reason } = input;
  const session = sessions.get(sessionId);
  if (session === null) return err(noSessionError(sessionId));
  if (session.lock !== null) {
    return err(
      localError('session_of_plan', "A plan's container starts without any credential; bind the host instead."),
    );
  }
  const path = parseVaultReference(reference);
  if (!path.ok) return err(localError('invalid_input', `reference: ${path.error.message}`));
  if (isScoped(session.scopes, reference)) {
    return err(
      localError('invalid_input', `reference: the session narrows ${reference}, so no program gets its value`),
    );
  }
  if (!audit.accepting) return err(auditUnavailableError());
  const released = await options.releaseUnsealed({ path: path.value, host, reason });
  if (!released.ok) return err(localError(released.error.reason, released.error.message));
  if (session.ended) return err(noSessionError(sessionId));
  session.noteUnsealed({ env, reference, host, reason });
  await sessions.save(session);
  audit.record({
    type: 'sandbox.proxy.credential_unsealed',
    session_id: sessionId,
    actor: 'session',
    data: {
      'svc.proxy.credential_ref': reference,
      'svc.proxy.upstream.host': host,
      'svc.proxy.reason': reason,
      ...(session.sandbox !== null && { 'svc.sandbox.image': session.sandbox.image }),
    },
  });
  return ok({ value: released.value.reveal() });
}
