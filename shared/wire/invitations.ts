import { z } from 'zod';
import { ROLES } from '../model/role.ts';
import { email } from './auth.ts';
import { id, page, pageQuery, time } from './primitives.ts';

export const MAX_INVITATION_DAYS = 30;
const DEFAULT_INVITATION_DAYS = 7;

/** What became of an invitation. */
const INVITATION_STATES = ['open', 'accepted', 'revoked', 'expired'] as const;

/** `POST /v1/invitations`. */
export const invitationInput = z
  .strictObject({
    email,
    role: z.enum(ROLES).default('member'),
    expires_in_days: z.number().int().min(1).max(MAX_INVITATION_DAYS).default(DEFAULT_INVITATION_DAYS),
  })
  .meta({ id: 'CreateInvitation' });
export type InvitationInput = z.infer<typeof invitationInput>;

const invitationFields = {
  id: id('inv'),
  /** Lower-case. */
  email: z.string(),
  role: z.enum(ROLES),
  state: z.enum(INVITATION_STATES),
  created_at: time,
  expires_at: time,
};

/** An invitation to the caller's enterprise. */
const invitationRecord = z.object(invitationFields).meta({ id: 'Invitation' });
export type InvitationRecord = z.infer<typeof invitationRecord>;

/** The only reply that contains the link. */
export const createdInvitation = z
  .object({ ...invitationFields, url: z.string(), mailed: z.boolean() })
  .meta({ id: 'CreatedInvitation' });
export type CreatedInvitation = z.infer<typeof createdInvitation>;

export const invitationsQuery = z.strictObject({ ...pageQuery });
export const invitationsPage = page(invitationRecord).meta({ id: 'InvitationsPage' });
export const invitationParams = z.strictObject({ id: id('inv') });
