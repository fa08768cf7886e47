import type { ClientCertificate } from '../model/host_binding.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import { type ContractRequest, readProblem } from './contract.ts';

/**
 * Checks the contract of a client certificate before its key is looked up, as `enforceContract` does for a binding. A request that it
 * does not admit is refused, and not sent without the certificate. Refuses with `host_not_allowed` or `effect_not_allowed`.
 */
export function enforceCertificate(
  { id, host, effect }: ClientCertificate,
  request: ContractRequest,
): Result<void, Refusal> {
  if (request.host !== host) {
    const message = `the client certificate is for ${host}, and the request goes to ${request.host}`;
    return err(refusal('host_not_allowed', message));
  }
  const acting = effect ?? (request.besideApprovals ? 'read' : undefined);
  const problem = acting === 'read' ? readProblem(request) : null;
  if (problem === null) return ok(undefined);
  const why =
    effect === undefined
      ? `has no effect, and counts as "read" because a connector for ${host} has operations that need an approval`
      : 'has effect "read"';
  const message = `the client certificate for ${host} (${id}) ${why}: ${problem}; if it may do more, add it again with "svc cert add ${host} --effect write"`;
  return err(refusal('effect_not_allowed', message));
}
