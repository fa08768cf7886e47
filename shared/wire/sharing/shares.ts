import { z } from 'zod';
import { EFFECTS, EMIT_MECHANISMS, INJECTION_SCHEMES } from '../../model/host_binding.ts';
import { MCP_MODES } from '../../model/mcp_server.ts';
import { email } from '../auth.ts';
import { id, page, pageQuery, time } from '../primitives.ts';
import { counted } from '../../model/sentence.ts';

/** Whose shares are listed: those that the caller gave, those with the caller, or for admins all of the enterprise. */
export const SHARE_LISTS = ['given', 'received', 'all'] as const;

/**
 * What a share is to the caller, if it is with the caller. `to_accept`: a colleague shares it, and it is used once the caller
 * accepts it. `overridden`: another binding of the caller or the enterprise comes first. `paused`: whoever shares is suspended,
 * or changed the binding to one that cannot be shared.
 */
export const SHARE_STATES = ['in_force', 'to_accept', 'overridden', 'paused'] as const;

/** What can be shared. */
export const SHARE_KINDS = ['host_binding', 'connector', 'mcp_server'] as const;
export type ShareKind = (typeof SHARE_KINDS)[number];

/** `POST /v1/shares`: one of `binding_id`, `connector_id` and `mcp_server_id`, and one of `user_id`, `email` and `group_id`. */
export const shareInput = z
  .strictObject({
    /** A binding of the caller's own. */
    binding_id: id('bnd').optional(),
    /** A connector of the caller's own. */
    connector_id: id('con').optional(),
    /** An MCP server of the caller's own. */
    mcp_server_id: id('mcp').optional(),
    user_id: id('usr').optional(),
    /** The address of a colleague. */
    email: email.optional(),
    group_id: id('grp').optional(),
  })
  .superRefine((input, context) => {
    const { user_id: user, email: address, group_id: group } = input;
    const { binding_id: binding, connector_id: connector, mcp_server_id: server } = input;
    if (!isOne(user, address, group)) {
      const message = 'name one receiver: group_id, user_id or email';
      context.addIssue({ code: 'custom', path: ['group_id'], message });
    }
    if (!isOne(binding, connector, server)) {
      const message = 'name one thing of yours: binding_id, connector_id or mcp_server_id';
      context.addIssue({ code: 'custom', path: ['binding_id'], message });
    }
  })
  .meta({ id: 'CreateShare' });
export type ShareInput = z.infer<typeof shareInput>;

function isOne(...values: readonly unknown[]): boolean {
  return values.filter((each) => each !== undefined).length === 1;
}

const person = z.object({ id: id('usr'), display_name: z.string() });

/** Its `updated_at`, which an acceptance repeats. */
const revision = time;

/** What is shared with whom: one of `binding`, `connector` and `mcp_server`, by the kind. The vault path of a secret is the owner's own, and not shown. */
export const shareRecord = z
  .object({
    id: id('shr'),
    /** A control plane of an earlier version does not say it, and shares bindings only. */
    kind: z.enum(SHARE_KINDS).default('host_binding'),
    binding: z
      .object({
        id: id('bnd'),
        host: z.string(),
        scheme: z.enum(INJECTION_SCHEMES),
        emit_mechanism: z.enum(EMIT_MECHANISMS),
        allowed_hosts: z.array(z.string()),
        effect: z.enum(EFFECTS).nullable(),
        revision,
      })
      .nullable(),
    connector: z
      .object({
        id: id('con'),
        fqn: z.string(),
        title: z.string(),
        version: z.string(),
        hosts: z.array(z.string()),
        operation_count: z.number().int(),
        revision,
      })
      .nullable()
      .default(null),
    mcp_server: z
      .object({
        id: id('mcp'),
        name: z.string(),
        mode: z.enum(MCP_MODES),
        /** Of a remote server. */
        url: z.string().nullable(),
        /** Of a local server, which each machine asks its person about before it runs. */
        command: z.array(z.string()),
        revision,
      })
      .nullable()
      .default(null),
    shared_by: person,
    shared_with: z.object({ kind: z.enum(['user', 'group']), id: z.string(), display_name: z.string() }),
    created_at: time,
    state: z.enum(SHARE_STATES).nullable(),
  })
  .meta({ id: 'Share' });
export type ShareRecord = z.infer<typeof shareRecord>;

/** What a share is about: its name for a person, and the revision that an acceptance repeats. */
export interface SharedThing {
  readonly id: string;
  readonly name: string;
  readonly revision: string;
  /** In one line, how it is used. */
  readonly how: string;
}

/** What a share is about, whatever its kind. */
export function sharedThing({ binding, connector, mcp_server: server }: ShareRecord): SharedThing {
  if (connector !== null) {
    const { fqn: name, hosts, operation_count: count } = connector;
    return {
      ...connector,
      name,
      how: `connector: ${counted(count, 'operation')} of ${hosts.join(', ')}`,
    };
  }
  if (server !== null) return { ...server, how: `MCP server: ${server.url ?? server.command.join(' ')}` };
  if (binding === null) throw new TypeError('a share is about nothing');
  const { host: name, scheme, effect, allowed_hosts: allowed } = binding;
  const only = allowed.length === 0 ? '' : `only ${allowed.join(', ')}; `;
  return { ...binding, name, how: `${only}${scheme}, ${effect === null ? 'every effect' : `effect ${effect}`}` };
}

/** `POST /v1/shares/{id}/accept`: with the revision that the person saw. */
export const acceptInput = z.strictObject({ revision: time }).meta({ id: 'AcceptShare' });

export const sharesQuery = z.strictObject({ ...pageQuery, list: z.enum(SHARE_LISTS).default('given') });
export const sharesPage = page(shareRecord).meta({ id: 'SharesPage' });
export const shareParams = z.strictObject({ id: id('shr') });
