import { z } from 'zod';
import type { BorrowGrant } from './borrow_grant.ts';
import { EFFECTS, INJECTION_SCHEMES } from '../model/host_binding.ts';
import { findVariableRefusal } from '../mcp/dangers/environment_dangers.ts';
import { hostPatternText } from '../wire/host_binding_fields.ts';
import { contentHash, id, owner, time } from '../wire/primitives.ts';
import { vaultPath } from '../wire/secrets.ts';

/** The calls about borrowed secrets between the CLI and the sidecar, and what the sidecar keeps of consents. */

const MAX_ARGUMENTS = 100;
const MAX_VARIABLES = 50;
const MAX_HOSTS = 50;
const MAX_TEXT = 4_096;

/** A text that a process can be given, and that canonical JSON can contain. */
const processText = z
  .string()
  .max(MAX_TEXT)
  .refine((text) => !/[\0\p{Cs}]/u.test(text), 'has a character that no argument can hold');
const fieldPath = z
  .string()
  .regex(/^[^.\s]+(?:\.[^.\s]+)*$/, 'is not the name of a field, such as credential.access_token');

/** What the fixed environment sets, and what could load other code. */
const variables = z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), processText).superRefine((env, context) => {
  const names = Object.keys(env);
  if (names.length > MAX_VARIABLES)
    context.addIssue({ code: 'custom', message: `has more than ${MAX_VARIABLES} variables` });
  for (const name of names) {
    const refused = mayName(name) ? null : findVariableRefusal(name);
    if (refused !== null) context.addIssue({ code: 'custom', path: [name], message: refused });
  }
});

/** Folders of settings, which programs of providers have. */
function mayName(name: string): boolean {
  return /^(?:HOME|XDG_(?:CONFIG|CACHE|DATA|STATE)_HOME)$/.test(name);
}

export const borrowGrant = z.strictObject({
  owner,
  path: vaultPath,
  program: processText.regex(/^\//, 'is no absolute path'),
  args: z.array(processText).max(MAX_ARGUMENTS),
  env: variables,
  output: z.discriminatedUnion('form', [
    z.strictObject({ form: z.literal('text') }),
    z.strictObject({ form: z.literal('json'), value: fieldPath, expires: fieldPath.optional() }),
    z.strictObject({ form: z.literal('aws') }),
  ]),
  files: z.array(z.strictObject({ path: processText, sha256: contentHash.nullable() })).max(MAX_ARGUMENTS + 1),
  hosts: z.array(hostPatternText).min(1, 'is empty: name the hosts that may get the value').max(MAX_HOSTS),
  scheme: z.enum(INJECTION_SCHEMES),
  place: z
    .string()
    .regex(/^[!-~]{1,128}$/, 'is not the name of a header or a query parameter')
    .optional(),
  effect: z.enum(EFFECTS),
}) satisfies z.ZodType<BorrowGrant>;

/** A consent as it is kept, in `$SVC_HOME/borrow/consents.json`. */
export const borrowConsent = z.strictObject({
  grant: borrowGrant,
  /** SHA-256 of the grant's text, in hex. */
  hash: contentHash,
  /** The enrolment for which it was given: another account or control plane has none. */
  sidecar_id: id('sdc'),
  consented_at: time,
});
export type BorrowConsent = Readonly<z.output<typeof borrowConsent>>;

/** `POST /v1/borrowed-secrets`: a person on this machine was shown the grant. */
export const borrowConsentInput = z.strictObject({ grant: borrowGrant, hash: contentHash });

/** `POST /v1/borrowed-secrets/test` and `/withdraw`. */
export const borrowedPlace = z.strictObject({ owner, path: z.string().max(MAX_TEXT) });

/** `GET /v1/borrowed-secrets`. */
export const borrowedList = z.object({
  items: z.array(
    borrowConsent.extend({
      /** The control plane lists the secret as borrowed, and something refers to it. */
      in_use: z.boolean(),
      /** Until when the value that is held now is used; null if none is. */
      held_until: time.nullable(),
      /** Why there is no value, for the person at this machine. */
      failure: z.object({ message: z.string(), stderr: z.string().nullable(), at: time }).nullable(),
      /** What is wrong with its files now; null if nothing is. */
      problem: z.string().nullable(),
    }),
  ),
});
export type BorrowedItem = z.output<typeof borrowedList>['items'][number];

export const borrowedTestReply = z.object({ until: time, states_end: z.boolean(), key_set: z.boolean() });
