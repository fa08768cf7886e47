import type { Owner } from '../model/host_binding.ts';
import { covers } from '../net/host_pattern.ts';
import type { HostBindingRecord } from '../wire/host_binding.ts';
import type { RemovalEffect, RemovalPreview, RemovalUse } from '../wire/removals.ts';
import { counted } from '../model/sentence.ts';

type Binding = Pick<HostBindingRecord, 'id' | 'host' | 'owner'>;

interface Removed {
  readonly name: string;
  readonly owner: Owner;
  readonly lastUsedAt: string | null;
}

interface Sharable extends Removed {
  /** The colleagues and groups with whom it is shared, by name. */
  readonly sharedWith: readonly string[];
}

/** A thing to delete, with everything that decides what its deletion does. */
export type RemovalFacts = SecretRemoval | BindingRemoval | ConnectorRemoval | ServerRemoval;

interface SecretRemoval extends Removed {
  readonly kind: 'secret';
  /** What refers to it. */
  readonly users: readonly RemovalUse[];
  /** Whether a source mints its value. */
  readonly isMinted: boolean;
}

interface BindingRemoval extends Sharable {
  readonly kind: 'binding';
  readonly id: string;
  readonly reference: string;
  /** The variable of the agent's placeholder, if it has one. */
  readonly placeholderIn: string | null;
  /** Every binding that the owner of this one sees. */
  readonly bindings: readonly Binding[];
  /** Connectors in force that have operations on its host. */
  readonly connectors: readonly RemovalUse[];
}

interface ConnectorRemoval extends Sharable {
  readonly kind: 'connector';
  readonly id: string;
  /** Whether its operations are in force. */
  readonly isActive: boolean;
  readonly hosts: readonly string[];
  readonly operations: readonly { readonly name: string; readonly needsApproval: boolean }[];
  /** The reference of a secret that serves it; null if the credential is its own and is deleted with it. */
  readonly sharedReference: string | null;
  readonly hasCredential: boolean;
  /** Bindings that send its own credential. */
  readonly users: readonly RemovalUse[];
  readonly bindings: readonly Binding[];
}

interface ServerRemoval extends Sharable {
  readonly kind: 'mcp_server';
  /** Stored credentials by name. */
  readonly credentials: readonly string[];
  readonly isSignedIn: boolean;
  readonly isEnabled: boolean;
}

/** What deleting something does: what stops working, what applies instead, what is lost and what stays. */
export function describeRemoval(facts: RemovalFacts): RemovalPreview {
  const { kind, name, owner, lastUsedAt } = facts;
  const allowed = facts.kind !== 'secret' || facts.users.length === 0;
  const everyone = effect('for_everyone', 'It belongs to the enterprise: this holds for everyone in it.');
  const effects = [...effectsOf(facts), ...(owner === 'enterprise' ? [everyone] : [])];
  return { kind, name, owner, allowed, effects, last_used_at: lastUsedAt };
}

function effectsOf(facts: RemovalFacts): RemovalEffect[] {
  if (facts.kind === 'secret') return ofSecret(facts);
  if (facts.kind === 'binding') return ofBinding(facts);
  return facts.kind === 'connector' ? ofConnector(facts) : ofServer(facts);
}

function ofSecret({ users, isMinted }: SecretRemoval): RemovalEffect[] {
  const servers = users.filter(({ kind }) => kind === 'mcp_server');
  const requests = users.filter(({ kind }) => kind !== 'mcp_server');
  return [
    ...(requests.length === 0
      ? []
      : [
          effect('requests_refused', 'These use it. Without it, their requests are refused with status 503:', {
            uses: requests,
          }),
        ]),
    ...(servers.length === 0
      ? []
      : [effect('servers_stopped', 'These MCP servers use it, and do not start without it:', { uses: servers })]),
    ...(users.length > 0
      ? []
      : [effect('unused', 'Nothing refers to it.'), effect('deleted_with_it', lostWords(isMinted))]),
  ];
}

function lostWords(isMinted: boolean): string {
  const lost = isMinted ? 'Its source is deleted with it.' : 'The value is deleted for good.';
  return `${lost} Machines that have a copy delete it at once.`;
}

function ofBinding(facts: BindingRemoval): RemovalEffect[] {
  const { id, name, reference, placeholderIn, bindings, sharedWith, connectors } = facts;
  const next = bindings.filter((other) => other.id !== id && covers(other.host, name)).map(useOf);
  return [
    effect('credential_lost', `Requests to ${name} no longer get ${reference}.`),
    next.length > 0
      ? effect('next_credential', 'They match these bindings instead:', { uses: next })
      : effect(
          'requests_refused',
          'Apart from operations of connectors, they are forwarded without a credential. A session that may reach bound hosts only cannot reach the host any more.',
        ),
    ...(placeholderIn === null || next.length > 0
      ? []
      : [
          effect(
            'credential_lost',
            `The placeholder in ${placeholderIn} is then sent as it is, and the service refuses it.`,
          ),
        ]),
    ...lostToOthers(sharedWith),
    ...(connectors.length === 0
      ? []
      : [effect('kept', 'Their operations on this host keep their own credential:', { uses: connectors })]),
    effect('kept', `${reference} stays in the vault.`),
  ];
}

function lostToOthers(sharedWith: readonly string[]): RemovalEffect[] {
  if (sharedWith.length === 0) return [];
  return [
    effect('credential_lost', 'It is shared with these colleagues and groups, who lose it too:', { names: sharedWith }),
  ];
}

function ofConnector(facts: ConnectorRemoval): RemovalEffect[] {
  const { isActive, hosts, operations, users, bindings, sharedReference, hasCredential, sharedWith } = facts;
  const gated = operations.filter(({ needsApproval }) => needsApproval).map(({ name }) => name);
  const next = bindings.filter(({ host }) => hosts.some((each) => covers(host, each) || host === each));
  const own = users.map(({ id }) => id);
  const others = next.filter(({ id }) => !own.includes(id)).map(useOf);
  return [
    ...(isActive ? [afterConnector(hosts, others)] : [effect('unused', 'Its operations are not in force.')]),
    ...(isActive && gated.length > 0 && others.length > 0
      ? [effect('approvals_end', 'Requests of these operations then need no approval any more:', { names: gated })]
      : []),
    ...(users.length === 0
      ? []
      : [
          effect('requests_refused', 'These send its credential. Their requests are refused with status 503:', {
            uses: users,
          }),
        ]),
    effect('tools_lost', `Agents lose ${counted(operations.length, 'tool')} of svc-mcp, one for each operation.`),
    ...lostToOthers(sharedWith),
    ...credentialOfConnector(sharedReference, hasCredential),
  ];
}

function afterConnector(hosts: readonly string[], others: readonly RemovalUse[]): RemovalEffect {
  const to = `Requests to ${hosts.join(', ')}`;
  return others.length === 0
    ? effect('credential_lost', `${to} get no credential: no other binding is for these hosts.`)
    : effect('next_credential', `${to} get the credential of these bindings:`, { uses: others });
}

function credentialOfConnector(sharedReference: string | null, hasCredential: boolean): RemovalEffect[] {
  if (!hasCredential) return [];
  return sharedReference === null
    ? [
        effect(
          'deleted_with_it',
          'Its credential is deleted for good. Tokens are revoked at the provider first, if it names where.',
        ),
      ]
    : [effect('kept', `${sharedReference} stays in the vault.`)];
}

function ofServer({ credentials, isSignedIn, isEnabled, sharedWith }: ServerRemoval): RemovalEffect[] {
  const lost = [...credentials, ...(isSignedIn ? ['the sign-in to it'] : [])];
  return [
    isEnabled
      ? effect('servers_stopped', 'Gateways stop it.')
      : effect('unused', 'It is disabled: no gateway runs it.'),
    effect('tools_lost', 'Agents and clients no longer see its tools.'),
    ...lostToOthers(sharedWith),
    lost.length === 0
      ? effect('unused', 'It has no stored credentials.')
      : effect('deleted_with_it', 'Deleted with it for good:', { names: lost }),
  ];
}

function useOf({ id, host, owner }: Binding): RemovalUse {
  return { kind: 'binding', id, name: owner === 'enterprise' ? `${host} (enterprise)` : host };
}

function effect(
  code: RemovalEffect['code'],
  text: string,
  about: { readonly uses?: readonly RemovalUse[]; readonly names?: readonly string[] } = {},
): RemovalEffect {
  return { code, text, uses: [...(about.uses ?? [])], names: [...(about.names ?? [])] };
}
