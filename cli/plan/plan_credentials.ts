import type { SealedStep } from '../../shared/wire/plan/plan_lock.ts';
import { hostBindingsPage } from '../../shared/wire/host_bindings.ts';
import type { HostBindingRecord } from '../../shared/wire/host_binding.ts';
import { matchesHostPattern, parseHostPattern } from '../../shared/net/host_pattern.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT, isUnreachable } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';

/**
 * If a step names a credential, one of its hosts must be bound to it; otherwise the step is not run. If the control plane is
 * away, this is not checked, and the proxy decides as usual.
 */
export async function checkCredentials(call: Call, steps: readonly SealedStep[]): Promise<void> {
  const counting = steps.filter(({ credential }) => credential !== undefined);
  if (counting.length === 0) return;
  const bindings = await listBindings(call);
  if (bindings === null) return;
  for (const step of counting) {
    if (bindings.some((binding) => binding.credential_ref === step.credential && bindsAny(binding, step.hosts)))
      continue;
    const host = step.hosts[0] ?? 'HOST';
    throw new CliError(
      EXIT.notStarted,
      `step ${step.id} needs ${step.credential}, but none of its hosts is bound to it`,
      [`Bind it: svc binding add ${host} --credential ${step.credential} --scheme SCHEME`],
    );
  }
}

async function listBindings(call: Call): Promise<readonly HostBindingRecord[] | null> {
  try {
    return await fetchAllPages(controlClient(call.context, call.options), '/v1/host-bindings', hostBindingsPage);
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    call.print.warn(`${error.message}; the bindings of the steps' credentials were not checked`);
    return null;
  }
}

function bindsAny(binding: HostBindingRecord, hosts: readonly string[]): boolean {
  const pattern = parseHostPattern(binding.host);
  return pattern.ok && hosts.some((host) => matchesHostPattern(pattern.value, host));
}
