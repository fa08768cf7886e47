import { z } from 'zod';
import { parseEmail } from '../model/email.ts';
import { err, ok, type Result } from '../model/result.ts';
import { findSteering } from '../model/shown_text.ts';
import { asJsonObject, canonical } from './json_resource.ts';
import { type Attribute, GROUP_KIND, type ResourceKind, USER_KIND } from './schemas.ts';
import { type ScimProblem, scimProblem } from './scim_problem.ts';

const MAX_TEXT = 200;
const MAX_NAME = 254;
const MAX_EMAILS = 10;
/** The most members of a group that one request may name. */
export const MAX_MEMBERS = 5_000;

const text = (most: number) =>
  z
    .string()
    .max(most, `is longer than ${most} characters`)
    .refine((value) => findSteering(value, false) === null, 'contains a control character');

/** Directories also send booleans as strings. */
const boolean = z
  .union([z.boolean(), z.string().max(5)])
  .transform((value) => String(value).toLowerCase())
  .refine((value) => value === 'true' || value === 'false', 'is neither true nor false')
  .transform((value) => value === 'true');

const part = text(MAX_TEXT).optional();

const email = z.object({
  value: text(MAX_NAME),
  type: text(MAX_TEXT).optional(),
  display: part,
  primary: boolean.optional(),
});

const user = z.object({
  userName: text(MAX_NAME).min(1, 'is empty'),
  externalId: text(MAX_TEXT).optional(),
  displayName: part,
  name: z
    .object({
      formatted: part,
      familyName: part,
      givenName: part,
      middleName: part,
      honorificPrefix: part,
      honorificSuffix: part,
    })
    .optional(),
  emails: z.array(email).max(MAX_EMAILS, `has more than ${MAX_EMAILS} addresses`).default([]),
  active: boolean.default(true),
});

/** A user as a directory describes it. */
export type ScimUser = z.infer<typeof user>;

const group = z.object({
  displayName: text(100).trim().min(1, 'is empty'),
  externalId: text(MAX_TEXT).optional(),
  members: z
    .array(z.object({ value: z.string().max(MAX_TEXT) }))
    .max(MAX_MEMBERS, `has more than ${MAX_MEMBERS} members`)
    .default([]),
});

export type ScimGroup = z.infer<typeof group>;

/** Reads a user. Unknown attributes are ignored (RFC 7643 section 3.1), a password among them. */
export function parseUser(body: unknown): Result<ScimUser, ScimProblem> {
  return parse(user, body, USER_KIND);
}

export function parseGroup(body: unknown): Result<ScimGroup, ScimProblem> {
  return parse(group, body, GROUP_KIND);
}

function parse<T>(schema: z.ZodType<T>, body: unknown, kind: ResourceKind): Result<T, ScimProblem> {
  const object = asJsonObject(body);
  if (object === null) return err(scimProblem('invalidSyntax', 'the body must be a JSON object'));
  const parsed = schema.safeParse(writable(canonical(object, kind.attributes), kind.attributes));
  if (parsed.success) return ok(parsed.data);
  const [issue] = parsed.error.issues;
  const field = issue?.path.map(String).join('.') ?? '';
  const isMissing = issue?.code === 'invalid_type' && issue.input === undefined;
  return err(scimProblem('invalidValue', `${field} ${isMissing ? 'is missing or of the wrong type' : issue?.message}`));
}

function writable(object: Readonly<Record<string, unknown>>, attributes: readonly Attribute[]) {
  const kept = attributes.filter(({ mutability }) => mutability !== 'readOnly').map(({ name }) => name);
  return Object.fromEntries(Object.entries(object).filter(([name]) => kept.includes(name)));
}

/** The address that counts: the primary one, else the first, else the name if it is an address. Null if it is none. */
export function addressOf({
  emails,
  userName,
}: ScimUser): { readonly address: string; readonly domain: string } | null {
  const chosen = emails.findLast(({ primary }) => primary === true) ?? emails[0];
  return parseEmail(chosen?.value ?? userName);
}

/** The name that people see: as the directory writes it, else made of its parts, else the name at the directory. */
export function displayNameOf({ displayName, name, userName }: ScimUser): string {
  const parts = [name?.givenName, name?.familyName].filter((each) => each !== undefined && each !== '').join(' ');
  return [displayName, name?.formatted, parts].find((each) => each !== undefined && each.trim() !== '') ?? userName;
}
