import { err, ok, type Result } from '../../../shared/model/result.ts';
import { type ApiError, apiError } from '../../../shared/wire/errors.ts';
import {
  type MarketplaceInput,
  marketplaceInstallInput,
  type MarketplacePreviewReply,
  marketplacePreviewInput,
} from '../../../shared/wire/marketplace.ts';
import { install } from '../../marketplace/install.ts';
import { previewInstall } from '../../marketplace/install_plan.ts';
import { EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import { pathWith } from '../../pages/components/pager.ts';
import { inputField } from '../../pages/mcp/install_fields.ts';
import { hasIsolationChoice } from '../../pages/mcp/isolation_field.ts';
import type { InstallSubject } from '../../pages/mcp/marketplace_words.ts';
import {
  changedSinceReviewPage,
  inputsGivenNow,
  installReviewPage,
  installSettingsPage,
  type InstallView,
} from '../../pages/mcp/mcp_install.ts';
import type { Caller } from '../../kernel/caller.ts';
import { sha256Base64Url } from '../../kernel/encoding.ts';
import { describeMcpRules } from '../../services/mcp/mcp_rules.ts';
import type { AppContext } from '../http/app_env.ts';
import { redirectDone, type Fields, forChange, formAgain, forReader, problem, ownerChoice } from './console.ts';
import { invalidInput } from '../http/error_reply.ts';
import { consolePage } from './pages.ts';
import { toSentence } from '../../../shared/model/sentence.ts';

/** `GET /mcp-servers/install?registry_id=&version=&package=&remote=&step=` */
export const getMcpInstall = forReader(async (c, caller) => {
  const view = await viewOf(c, caller, c.req.query());
  if (!view.ok) return problem(c, caller, view.error);
  const isSettings = c.req.query('step') === 'settings';
  const shown = isSettings
    ? installSettingsPage(view.value, EMPTY_FORM, ownerChoice(c, caller))
    : installReviewPage(view.value);
  return consolePage(c, caller, shown);
});

/** `POST /mcp-servers/install` */
export const submitMcpInstall = forChange(async (c, caller, fields) => {
  const view = await viewOf(c, caller, fields);
  if (!view.ok) return problem(c, caller, view.error);
  if (fields['reviewed'] !== view.value.reviewed)
    return consolePage(c, caller, changedSinceReviewPage(view.value), 409);
  const asked = inputsGivenNow(view.value.preview);
  const showAgain = (error: ApiError) =>
    formAgain(
      c,
      caller,
      installSettingsPage(view.value, toRefusedInputs(fields, asked, error), ownerChoice(c, caller)),
      error,
    );
  const { name = '', owner = 'personal', isolation = 'container' } = fields;
  const isChosen = !view.value.isBoxed && hasIsolationChoice(view.value.preview);
  const body = {
    ...choiceOf(view.value.subject),
    owner,
    ...(name !== '' && { name }),
    ...(isChosen && { isolation }),
    inputs: inputsOf(fields, asked),
  };
  const parsed = marketplaceInstallInput.safeParse(body);
  if (!parsed.success) return showAgain(invalidInput('json', parsed.error));
  const installed = await install(c.get('context'), caller, view.value.subject.registry_id, parsed.data);
  if (!installed.ok) return showAgain(installed.error);
  const { server } = installed.value.value.reply;
  if (server === null) return problem(c, caller, apiError('internal_error', 'an install returned no server'));
  if (!installed.value.value.isNew) return redirectDone(c, `/mcp-servers/${server.id}`, 'mcp_was_installed');
  const isComplete = view.value.preview.inputs.length === asked.length;
  return c.redirect(
    pathWith(`/mcp-servers/${server.id}/${isComplete ? 'connect' : 'credentials'}`, {
      done: 'mcp_installed',
      install: '1',
    }),
    303,
  );
});

async function viewOf(c: AppContext, caller: Caller, query: Fields): Promise<Result<InstallView, ApiError>> {
  const subject = subjectOf(query);
  const parsed = marketplacePreviewInput.safeParse(choiceOf(subject));
  if (!parsed.success) return err(invalidInput('query', parsed.error));
  const context = c.get('context');
  const preview = await previewInstall(context, caller, subject.registry_id, parsed.data);
  if (!preview.ok) return preview;
  return ok({
    subject,
    preview: preview.value.preview,
    rule_problem: preview.value.rule_problem,
    isBoxed: (await describeMcpRules(context, caller)).isolation === 'container',
    reviewed: await fingerprint(preview.value),
    freshness: preview.value,
    nowMs: context.clock.now(),
  });
}

function subjectOf({ registry_id = '', version = '', package: item, remote }: Fields): InstallSubject {
  return { registry_id, version, ...(item && { package: item }), ...(remote && { remote }) };
}

function choiceOf({ version, package: item, remote }: InstallSubject) {
  return {
    ...(version !== '' && { version }),
    ...(item !== undefined && { package: Number(item) }),
    ...(remote !== undefined && { remote: Number(remote) }),
  };
}

/** Ensures that exactly what was shown is installed: this differs if the registry's entry changed meanwhile. */
function fingerprint({ preview }: MarketplacePreviewReply): Promise<string> {
  return sha256Base64Url(JSON.stringify(preview));
}

/** The values of inputs from the form's fields; empty ones are left out. */
export function inputsOf(fields: Fields, asked: readonly MarketplaceInput[]): Record<string, string | string[]> {
  const given: Record<string, string | string[]> = {};
  for (const [index, { name, repeated }] of asked.entries()) {
    const text = fields[inputField(index)] ?? '';
    const lines = text.split(/\r?\n/).filter((line) => line !== '');
    if (lines.length > 0) Object.defineProperty(given, name, { value: repeated ? lines : text, enumerable: true });
  }
  return given;
}

/** The form again, with its input except secrets, and each problem beside its input. */
export function toRefusedInputs(fields: Fields, asked: readonly MarketplaceInput[], error: ApiError): FormState {
  const secret = new Set(asked.flatMap((input, index) => (input.secret ? [inputField(index)] : [])));
  const values = Object.fromEntries(Object.entries(fields).filter(([name]) => !secret.has(name)));
  const problems = problemsOf(error).map(({ name, message }) => {
    const index = asked.findIndex((input) => input.name === name);
    return { field: index < 0 ? name : inputField(index), message };
  });
  return { values, problems, refusal: problems.length > 0 ? null : toSentence(error.message) };
}

function problemsOf({
  code,
  details,
  message,
}: ApiError): readonly { readonly name: string; readonly message: string }[] {
  if (code === 'name_taken') return [{ name: 'name', message: 'is taken: choose another name' }];
  const listed: unknown = code === 'inputs_required' ? details?.['problems'] : details?.['fields'];
  if (!Array.isArray(listed)) return [];
  return listed.flatMap((each) => {
    const name: unknown = each?.input ?? each?.field;
    return typeof name === 'string'
      ? [{ name: name.replace(/^inputs\./, ''), message: String(each.message ?? message) }]
      : [];
  });
}
