import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { unavailableRefusal } from './channel_failure.ts';
import type { ControlChannel, UnsealedRequest } from './control_channel.ts';

/**
 * A credential of the user's own for a program that gets it in plaintext. Every use asks the control plane again; the value
 * is never cached, and not given if it ended on its way. Refuses with `credential_unavailable` or `control_plane_unavailable`.
 */
export async function releaseUnsealed(
  channel: Pick<ControlChannel, 'fetchUnsealed'>,
  request: UnsealedRequest,
  { now }: Pick<Clock, 'now'>,
): Promise<Result<Secret, Refusal>> {
  const reply = await channel.fetchUnsealed(request);
  if (!reply.ok && reply.error.code === 'credential_unavailable') {
    return err(refusal('credential_unavailable', reply.error.message));
  }
  if (!reply.ok) return err(unavailableRefusal(reply.error));
  const [released, ...others] = reply.value.released;
  const isMine = released?.ref.owner === 'personal' && released.ref.path === request.path && others.length === 0;
  if (isMine && now() >= (released.credential.expiresAt ?? Number.POSITIVE_INFINITY)) {
    return err(refusal('credential_unavailable', `The value of vault://${request.path} ended on its way. Try again.`));
  }
  if (isMine) return ok(released.credential.secret);
  const message = `The vault has no personal secret vault://${request.path}. Store it with: svc secret set ${request.path}`;
  return err(refusal('credential_unavailable', message));
}
