import { type HostPattern, parseHostPattern } from '../../../shared/net/host_pattern.ts';
import { parseNoProxy, withoutBoundHosts } from '../../../shared/net/no_proxy.ts';
import { noProxyText } from '../../../shared/net/upstream_proxy.ts';
import { controlClient } from '../../clients.ts';
import type { Call } from '../../command_line.ts';
import { isUnreachable } from '../../exit_codes.ts';

/** What svc sets by itself. */
const OWN = new Set(['localhost', '127.0.0.1', '::1']);

/**
 * The entries of the user's NO_PROXY that a command of a session keeps. One that covers a host with a binding or a connector,
 * or one of `more`, would lead requests past the sidecar: it is left out and named, as all are if the control plane cannot be
 * asked.
 */
export async function keptNoProxy(
  call: Pick<Call, 'context' | 'options' | 'print'>,
  more: readonly string[] = [],
): Promise<readonly string[]> {
  const { entries } = parseNoProxy(noProxyText(call.context.env));
  const given = { entries: entries.filter(({ text }) => !OWN.has(text.toLowerCase())) };
  if (given.entries.length === 0) return [];
  const bound = await boundHosts(call, more);
  if (bound === null) {
    const why =
      call.options.withoutUser === true
        ? 'a service account cannot ask which hosts are bound'
        : 'the control plane, which knows the bound hosts, cannot be reached';
    call.print.warn(`NO_PROXY is not passed on: ${why}`);
    return [];
  }
  const { kept, dropped } = withoutBoundHosts(given, bound);
  if (dropped.length > 0) {
    call.print.warn(`NO_PROXY is passed on without ${dropped.join(', ')}, which may cover a bound host`);
  }
  return kept;
}

async function boundHosts(
  { context, options }: Pick<Call, 'context' | 'options'>,
  more: readonly string[],
): Promise<HostPattern[] | null> {
  // Loaded on use, so that a run without a NO_PROXY starts faster.
  const [{ listAllBindings }, { listAllConnectors }] = await Promise.all([
    import('../../bindings/find_binding.ts'),
    import('../../connectors/connector_lookup.ts'),
  ]);
  try {
    const client = controlClient(context, options);
    const [bindings, connectors] = await Promise.all([listAllBindings(client), listAllConnectors(client)]);
    const hosts = [...more, ...bindings.map(({ host }) => host), ...connectors.flatMap((connector) => connector.hosts)];
    const patterns = hosts.map(parseHostPattern);
    return patterns.flatMap((pattern) => (pattern.ok ? [pattern.value] : []));
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    return null;
  }
}
