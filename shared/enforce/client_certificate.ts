import type { ClientCertificate } from '../model/host_binding.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import { type ContractRequest, effectProblem } from './contract.ts';

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
  const problem = effectProblem(effect, request);
  if (problem === null) return ok(undefined);
  const message = `the client certificate for ${host} (${id}) ${problem}; if it may do more, add it again with "svc cert add ${host} --effect write"`;
  return err(refusal('effect_not_allowed', message));
}
