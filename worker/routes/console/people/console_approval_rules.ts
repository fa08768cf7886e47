import { approvalRuleInput } from '../../../../shared/wire/people/approval_rules.ts';
import { type Caller, mayActAs } from '../../../kernel/caller.ts';
import { readAll } from '../../../kernel/read_all.ts';
import { approvalRulesPage } from '../../../pages/bindings/approval_rules.ts';
import { TICKED } from '../../../pages/components/checkbox_field.ts';
import type { FormState } from '../../../pages/components/form_field.ts';
import type { Page } from '../../../pages/frame/layout.ts';
import {
  addApprovalRule,
  listApprovalRulePage,
  removeApprovalRule,
} from '../../../services/approvals/approval_rules.ts';
import { listGroupPage } from '../../../services/sharing/groups.ts';
import type { AppContext } from '../../http/app_env.ts';
import {
  type Fields,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  type PageEntry,
  problem,
  redirectDone,
} from '../console.ts';
import { consolePage } from '../pages.ts';

const NEW_RULE: FormState = {
  values: { subject: 'connector', name: '*', action: '*', who: 'admin', persons: '1' },
  problems: [],
  refusal: null,
};

/** `GET /approval-rules` */
const getRules = forReader(async (c, caller) => consolePage(c, caller, await showRules(c, caller, NEW_RULE)));

async function showRules(c: AppContext, caller: Caller, form: FormState): Promise<Page> {
  const context = c.get('context');
  const isAdmin = mayActAs(caller, 'admin');
  const rules = await readAll((query) => listApprovalRulePage(context, caller, query));
  const groups = isAdmin ? (await readAll((query) => listGroupPage(context, caller, query))).items : [];
  return approvalRulesPage({ rules: rules.items, groups, isAdmin, form, done: c.req.query('done') });
}

/** `POST /approval-rules` */
const submitRule = forChange(async (c, caller, fields) => {
  const parsed = approvalRuleInput.safeParse(inputOf(fields));
  if (!parsed.success) {
    return formAgain(c, caller, await showRules(c, caller, placeProblems(invalidForm(fields, parsed.error))), null);
  }
  const added = await addApprovalRule(c.get('context'), caller, parsed.data);
  return added.ok ? redirectDone(c, '/approval-rules', 'approval_rule_added') : problem(c, caller, added.error);
});

function inputOf(fields: Fields) {
  const { subject, name, action, effect = '', who = '', persons } = fields;
  const approvers = who.startsWith('grp_') ? { group_id: who } : { role: who };
  const counts = fields['counts_requester'] === TICKED;
  return {
    subject,
    name,
    action,
    effects: effect === '' ? null : [effect],
    ...approvers,
    persons: Number(persons),
    excludes_requester: !counts,
  };
}

/** The form has other fields than the input. */
const FIELD_OF: Readonly<Record<string, string>> = {
  role: 'who',
  group_id: 'who',
  effects: 'effect',
  excludes_requester: 'counts_requester',
};

function placeProblems(form: FormState): FormState {
  const problems = form.problems.map(({ field, message }) => {
    const [name = ''] = field.split('.');
    return { field: FIELD_OF[name] ?? name, message };
  });
  return { ...form, problems };
}

/** `POST /approval-rules/{id}/remove` */
const submitRemoval = forChange(async (c, caller) => {
  const removed = await removeApprovalRule(c.get('context'), caller, c.req.param('id') ?? '');
  return removed.ok ? redirectDone(c, '/approval-rules', 'approval_rule_removed') : problem(c, caller, removed.error);
});

export const APPROVAL_RULE_PAGES: readonly PageEntry[] = [
  ['get', '/approval-rules', getRules],
  ['post', '/approval-rules', submitRule],
  ['post', '/approval-rules/{id}/remove', submitRemoval],
];
