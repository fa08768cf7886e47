import { z } from 'zod';
import { ROLES } from '../../model/role.ts';
import { id, page, pageQuery, time } from '../primitives.ts';

/** What became of a request to join. */
const JOIN_REQUEST_STATES = ['open', 'accepted', 'declined', 'withdrawn', 'expired'] as const;

/** `POST /v1/join-requests`: one of the enterprises that `GET /v1/join-offers` lists. */
export const joinRequestInput = z.strictObject({ enterprise_id: id('ent') }).meta({ id: 'AskToJoin' });
export type JoinRequestInput = z.infer<typeof joinRequestInput>;

/** A request as its own person sees it. */
export const ownJoinRequest = z
  .object({
    id: id('jrq'),
    enterprise_id: id('ent'),
    state: z.enum(JOIN_REQUEST_STATES),
    created_at: time,
    expires_at: time,
  })
  .meta({ id: 'OwnJoinRequest' });
export type OwnJoinRequest = z.infer<typeof ownJoinRequest>;

/** An enterprise that the caller may ask to join, by an address that the caller has proven. */
const joinOffer = z
  .object({
    enterprise_id: id('ent'),
    name: z.string(),
    /** The address that counts. */
    email: z.string(),
    /** The caller's last request; null if there is none. */
    request: ownJoinRequest.nullable(),
  })
  .meta({ id: 'JoinOffer' });
export type JoinOffer = z.infer<typeof joinOffer>;
export const joinOffersReply = z.object({ items: z.array(joinOffer) }).meta({ id: 'JoinOffers' });

/** A request as an admin of the enterprise sees it. */
export const joinRequestRecord = z
  .object({
    id: id('jrq'),
    /** The proven address, lower-case. */
    email: z.string(),
    /** As the person calls themselves: not proven. */
    display_name: z.string(),
    state: z.enum(JOIN_REQUEST_STATES),
    created_at: time,
    expires_at: time,
  })
  .meta({ id: 'JoinRequest' });
export type JoinRequestRecord = z.infer<typeof joinRequestRecord>;

/** `POST /v1/join-requests/{id}/accept`. */
export const joinAcceptance = z
  .strictObject({ role: z.enum(ROLES).default('member') })
  .meta({ id: 'AcceptJoinRequest' });
export type JoinAcceptance = z.infer<typeof joinAcceptance>;

export const joinRequestsQuery = z.strictObject({ ...pageQuery });
export const joinRequestsPage = page(joinRequestRecord).meta({ id: 'JoinRequestsPage' });
export const joinRequestParams = z.strictObject({ id: id('jrq') });
