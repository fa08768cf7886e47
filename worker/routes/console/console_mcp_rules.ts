import { mcpRulesInput, type McpRulesInput, type McpRulesRecord } from '../../../shared/wire/mcp/mcp_rules.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { TICKED } from '../../pages/components/checkbox_field.ts';
import type { FormState } from '../../pages/components/form_field.ts';
import { mcpRulesPage, rulesForm } from '../../pages/mcp/mcp_rules.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import { sha256Base64Url } from '../../kernel/encoding.ts';
import { checkMcpRules, describeMcpRules, replaceMcpRules } from '../../services/mcp/mcp_rules.ts';
import type { AppContext } from '../http/app_env.ts';
import {
  changedMeanwhile,
  type Fields,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  problem,
  redirectDone,
} from './console.ts';
import { toolsOf } from './console_mcp_form.ts';
import { consolePage } from './pages.ts';

/** `GET /mcp-rules` */
export const getMcpRulesPage = forReader(async (c, caller) => {
  const rules = await describeMcpRules(c.get('context'), caller);
  return consolePage(c, caller, await rulesPage(c, caller, rules, { form: rulesForm(rules), check: null }));
});

/**
 * `POST /mcp-rules`: shows what the rules of the form would stop, or saves them. Only what was checked is saved, and only if
 * nobody has changed the rules meanwhile.
 */
export const submitMcpRules = forChange(async (c, caller, fields) => {
  const context = c.get('context');
  const stored = await describeMcpRules(context, caller);
  const again = async (form: FormState, check: Check = null, error: ApiError | null = null) =>
    formAgain(c, caller, await rulesPage(c, caller, stored, { form, check }), error);
  const parsed = mcpRulesInput.safeParse(inputOf(fields));
  if (!parsed.success) return again(placeProblems(invalidForm(fields, parsed.error)));
  const form = { values: fields, problems: [], refusal: null };
  if (fields['before'] !== stored.revision) return again({ ...rulesForm(stored), refusal: CHANGED });
  const rules = await hashOf(parsed.data);
  if (fields['step'] === 'save' && fields['checked'] === rules) {
    const saved = await replaceMcpRules(context, caller, parsed.data, stored.revision);
    if (saved.ok) return redirectDone(c, '/mcp-rules', 'mcp_rules_saved');
    if (saved.error.code !== 'conflict') return problem(c, caller, saved.error);
    const now = await describeMcpRules(context, caller);
    const shown = { ...rulesForm(now), refusal: CHANGED };
    return formAgain(c, caller, await rulesPage(c, caller, now, { form: shown, check: null }), saved.error);
  }
  const stopped = await checkMcpRules(context, caller, parsed.data);
  if (!stopped.ok) return problem(c, caller, stopped.error);
  const check = { stopped: stopped.value.items, rules };
  if (fields['step'] === 'save') return again({ ...form, refusal: UNCHECKED }, check);
  return consolePage(c, caller, await rulesPage(c, caller, stored, { form, check }));
});

const CHANGED = changedMeanwhile('the rules');
const UNCHECKED = 'The form was changed after it was checked: this is what it stops now. Save it again.';

type Check = Parameters<typeof mcpRulesPage>[0]['check'];

async function rulesPage(
  c: AppContext,
  caller: Caller,
  rules: McpRulesRecord,
  shown: { readonly form: FormState; readonly check: Check },
) {
  const isAdmin = mayActAs(caller, 'admin');
  const isLocal = c.get('context').local !== null;
  return mcpRulesPage({ rules, isAdmin, isLocal, before: rules.revision ?? '', done: c.req.query('done'), ...shown });
}

function inputOf(fields: Fields) {
  return {
    sources: fields['from'] === 'these' ? linesOf(fields['sources']) : null,
    isolation: fields['isolation'],
    pinned_only: fields['pinned_only'] === TICKED,
    tools: toolsOf(fields),
  };
}

function linesOf(text = ''): string[] {
  return text.split(/[\s,]+/).filter((line) => line !== '');
}

function hashOf({ sources, isolation, pinned_only: isPinnedOnly, tools }: McpRulesInput) {
  const { allow, deny, approval } = tools;
  return sha256Base64Url(JSON.stringify([sources, isolation, isPinnedOnly, allow, deny, approval]));
}

/** `tools.allow.2` belongs to the field `allow`. */
function placeProblems(form: FormState): FormState {
  const problems = form.problems.map(({ field, message }) => ({ field: field.replace(/^tools\./, ''), message }));
  return { ...form, problems };
}
