import type { Hono } from 'hono';
import type { z } from 'zod';
import { checkCommand } from '../../machine/borrow/check_files.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import { grantText } from '../../shared/borrow/borrow_grant.ts';
import type { CredentialRef } from '../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import {
  borrowConsentInput,
  type BorrowedItem,
  type borrowedList,
  borrowedPlace,
  type borrowedTestReply,
} from '../../shared/borrow/borrow_calls.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import type { LocalEnv } from './local_env.ts';
import { localError, type LocalError } from './local_error.ts';
import { replyOf } from './reply_of.ts';
import { inputOf } from './request_input.ts';

type Options = Pick<LocalApiOptions, 'borrow'>;

/** The consents to borrowed secrets. They need the host token, which is checked before. */
export function addBorrowRoutes(app: Hono<LocalEnv>, options: Options): void {
  const path = '/v1/borrowed-secrets';
  app.get(path, async () => replyOf(ok(await listBorrowed(options))));
  app.post(path, async (c) => {
    const input = await inputOf(c.req.raw, borrowConsentInput);
    return replyOf(input.ok ? await giveConsent(options, input.value) : input);
  });
  app.post(`${path}/withdraw`, async (c) => {
    const input = await inputOf(c.req.raw, borrowedPlace);
    return replyOf(input.ok ? await withdrawConsent(options, input.value) : input);
  });
  app.post(`${path}/test`, async (c) => {
    const input = await inputOf(c.req.raw, borrowedPlace);
    return replyOf(input.ok ? await testBorrowed(options, input.value) : input);
  });
}

async function listBorrowed({ borrow }: Options): Promise<z.output<typeof borrowedList>> {
  const { consents, credentials, runsAs } = borrow;
  const items = consents.listAll().map(async (consent): Promise<BorrowedItem> => {
    const { grant } = consent;
    const files = await checkCommand(grant.program, grant.args, runsAs);
    const isSame = files.ok && JSON.stringify(files.value) === JSON.stringify(grant.files);
    const changed = isSame ? null : 'A file that it runs has changed since the consent.';
    const until = credentials.heldUntil(grant);
    const failure = credentials.failureOf(grant);
    return {
      ...consent,
      in_use: credentials.includes(grant),
      held_until: until === null ? null : new Date(until).toISOString(),
      failure: failure === null ? null : { ...failure, at: new Date(failure.at).toISOString() },
      problem: files.ok ? changed : files.error,
    };
  });
  return { items: await Promise.all(items) };
}

/** The sidecar looks at the files itself: what the caller saw must be what is there. */
async function giveConsent(
  { borrow }: Options,
  { grant, hash }: z.output<typeof borrowConsentInput>,
): Promise<Result<void, LocalError>> {
  if (hash !== sha256Hex(grantText(grant))) {
    return err(localError('invalid_input', 'hash: is not that of the grant'));
  }
  const files = await checkCommand(grant.program, grant.args, borrow.runsAs);
  if (!files.ok) return err(localError('command_refused', files.error));
  if (JSON.stringify(files.value) !== JSON.stringify(grant.files)) {
    return err(localError('conflict', 'A file that it runs has changed since it was shown: look at it again.'));
  }
  const given = await borrow.consents.give(grant);
  if (!given.ok) return err(localError('state_unusable', given.error.message));
  borrow.credentials.drop(grant);
  return ok(undefined);
}

async function withdrawConsent({ borrow }: Options, ref: CredentialRef): Promise<Result<void, LocalError>> {
  const withdrawn = await borrow.consents.withdraw(ref);
  if (!withdrawn.ok) return err(localError('state_unusable', withdrawn.error.message));
  borrow.credentials.drop(ref);
  return withdrawn.value ? ok(undefined) : err(noConsentError(ref));
}

async function testBorrowed(
  { borrow }: Options,
  ref: CredentialRef,
): Promise<Result<z.output<typeof borrowedTestReply>, LocalError>> {
  if (borrow.consents.find(ref) === null) return err(noConsentError(ref));
  const tested = await borrow.credentials.test(ref);
  if (!tested.ok) {
    const { message, stderr } = tested.error;
    const said = stderr === null ? '' : `: ${stderr}`;
    return err(localError('credential_unavailable', `No value: ${message}${said}`));
  }
  const { value, until } = tested.value;
  return ok({
    until: new Date(until).toISOString(),
    states_end: value.expiresAtMs !== null,
    key_set: value.signedAs !== undefined,
  });
}

function noConsentError({ path }: CredentialRef): LocalError {
  return localError('not_found', `Nobody on this machine has consented to borrow vault://${path}.`);
}
