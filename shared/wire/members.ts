import { z } from 'zod';
import { ROLES } from '../model/role.ts';
import { id, page, pageQuery, time } from './primitives.ts';
import { revision } from '../net/http/if_match.ts';

/** A user of the caller's enterprise. */
export const memberRecord = z
  .object({
    id: id('usr'),
    email: z.string().nullable(),
    display_name: z.string(),
    role: z.enum(ROLES),
    created_at: time,
    suspended_at: time.nullable(),
    revision,
  })
  .meta({ id: 'Member' });
export type MemberRecord = z.infer<typeof memberRecord>;

/** `PUT /v1/members/{id}`: with the `revision` that was read, only if nobody has changed the member since. */
export const memberInput = z
  .strictObject({ role: z.enum(ROLES), suspended: z.boolean(), revision })
  .meta({ id: 'ChangeMember' });
export type MemberInput = Omit<z.infer<typeof memberInput>, 'revision'>;

export const membersQuery = z.strictObject({ ...pageQuery });
export const membersPage = page(memberRecord).meta({ id: 'MembersPage' });
export const memberParams = z.strictObject({ id: id('usr') });

export const amount = z.number().int();

/** `GET /v1/members/{id}/departure`: how much of what is the member's own would leave with it. */
export const departureReply = z
  .object({
    secrets: amount,
    host_bindings: amount,
    tunnel_hosts: amount,
    client_certificates: amount.default(0),
    connectors: amount,
    mcp_servers: amount,
    tokens: amount,
    sidecars: amount,
    sign_ins: amount,
    mcp_clients: amount,
    /** What the member shares with others, who can no longer use it. */
    shares: amount.default(0),
    /** Groups that the member is in. */
    groups: amount.default(0),
  })
  .meta({ id: 'Departure' });
export type DepartureReply = z.infer<typeof departureReply>;

const DEPARTING: Readonly<Record<keyof DepartureReply, string>> = {
  secrets: 'secrets',
  host_bindings: 'host bindings',
  tunnel_hosts: 'tunnelled hosts',
  client_certificates: 'client certificates',
  connectors: 'connectors',
  mcp_servers: 'MCP servers',
  tokens: 'personal tokens',
  sidecars: 'sidecars',
  sign_ins: 'sign-ins',
  mcp_clients: 'MCP clients',
  shares: 'shares that colleagues lose',
  groups: 'memberships of groups',
};

/** What leaves, in words: `secrets: 3, sidecars: 1`; `nothing` if there is nothing. */
export function departureText(departure: DepartureReply): string {
  const parts = departureKinds
    .filter((kind) => departure[kind] > 0)
    .map((kind) => `${DEPARTING[kind]}: ${departure[kind]}`);
  return parts.length === 0 ? 'nothing' : parts.join(', ');
}

const departureKinds = departureReply.keyof().options;
