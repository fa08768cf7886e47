import type { HostBinding } from '../model/host_binding.ts';
import { formatVaultReference } from '../model/vault_path.ts';
import { compilePolicy } from './resolve.ts';

/** A secret that bindings send, with the patterns of these bindings. */
export interface SentSecret {
  readonly reference: string;
  readonly patterns: readonly string[];
}

/**
 * The secrets that fit a connector: bindings send each to every one of its hosts already, so the connector sends it nowhere
 * else. `bindings` and the connector have one owner.
 */
export function listFittingSecrets(bindings: readonly HostBinding[], hosts: readonly string[]): readonly SentSecret[] {
  const references = [...new Set(bindings.map(referenceOf))].toSorted();
  return references.flatMap((reference) => {
    if (hosts.length === 0 || unsentHosts(bindings, reference, hosts).length > 0) return [];
    const using = hosts.flatMap((host) => bindingsSending(bindings, reference, host));
    return [{ reference, patterns: [...new Set(using.map(({ host }) => host))] }];
  });
}

/** The hosts to which no binding sends a secret yet. */
export function unsentHosts(
  bindings: readonly HostBinding[],
  reference: string,
  hosts: readonly string[],
): readonly string[] {
  return hosts.filter((host) => bindingsSending(bindings, reference, host).length === 0);
}

function bindingsSending(bindings: readonly HostBinding[], reference: string, host: string): readonly HostBinding[] {
  const atHost = compilePolicy(bindings).bindingsFor(host);
  return atHost.filter(
    (binding) => referenceOf(binding) === reference && sendsItself(binding) && mayGoTo(binding, host),
  );
}

/** A signing key is never sent, and a password goes only together with its user name. */
function sendsItself({ injection }: HostBinding): boolean {
  return injection.scheme !== 'sigv4-resign' && injection.scheme !== 'basic';
}

function mayGoTo({ allowedHosts }: HostBinding, host: string): boolean {
  return allowedHosts.length === 0 || allowedHosts.includes(host);
}

function referenceOf({ credential }: HostBinding): string {
  return formatVaultReference(credential.path);
}
