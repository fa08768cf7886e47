import { z } from 'zod';
import { id, line, page, pageQuery, time } from './primitives.ts';

/** The prefix of a SCIM token. */
export const SCIM_TOKEN_PREFIX = 'svc_scim_';

/** Where a directory calls, below the origin of the control plane. */
export const SCIM_PATH = '/scim/v2';

/** The most tokens of an enterprise that work at a time: enough to replace one. */
export const MAX_SCIM_TOKENS = 5;

export const MAX_SCIM_TOKEN_DAYS = 731;
const DEFAULT_SCIM_TOKEN_DAYS = 366;

/** `POST /v1/scim-tokens`. */
export const scimTokenInput = z
  .strictObject({
    name: line(100).trim().min(1, 'is empty: say which directory uses it, such as Okta'),
    expires_in_days: z.number().int().min(1).max(MAX_SCIM_TOKEN_DAYS).default(DEFAULT_SCIM_TOKEN_DAYS),
  })
  .meta({ id: 'CreateScimToken' });
export type ScimTokenInput = z.infer<typeof scimTokenInput>;

const scimTokenFields = {
  id: id('sct'),
  name: z.string(),
  /** Who created it. */
  created_by: id('usr'),
  created_at: time,
  expires_at: time,
  /** To the minute; null before the first call. */
  last_used_at: time.nullable(),
  revoked_at: time.nullable(),
};

/** A token with which a directory provisions the caller's enterprise. */
export const scimTokenRecord = z.object(scimTokenFields).meta({ id: 'ScimToken' });
export type ScimTokenRecord = z.infer<typeof scimTokenRecord>;

/** 201: the only reply that shows the token. */
export const createdScimToken = z
  .object({ ...scimTokenFields, token: z.string(), base_url: z.string() })
  .meta({ id: 'CreatedScimToken' });
export type CreatedScimToken = z.infer<typeof createdScimToken>;

export const scimTokensQuery = z.strictObject({ ...pageQuery });
export const scimTokensPage = page(scimTokenRecord).meta({ id: 'ScimTokensPage' });
export const scimTokenParams = z.strictObject({ id: id('sct') });
