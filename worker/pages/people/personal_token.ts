import { html } from 'hono/html';
import { type CreatedToken, MAX_TOKEN_DAYS, SCOPES, type TokenRecord } from '../../../shared/wire/tokens.ts';
import { ACCOUNT_PAGE } from './account.ts';
import { alert } from '../components/alert.ts';
import { TICKED } from '../components/checkbox_field.ts';
import { codeBlock } from '../components/code_block.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, problemOf, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { writtenTime } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/** The name of a scope's checkbox. */
export const SCOPE_FIELD = 'scope ';

/** The form of a personal token. */
export function newTokenPage(form: FormState): Page {
  const content = html`${pageHeader({
      title: 'Create a personal token',
      above: ACCOUNT_PAGE,
      lead: 'For a script that calls the API as you, with at most your rights.',
    })}
    ${formRefusal(form, ['name', 'expires_in_days', 'scopes'])}
    <form class="panel stack" method="post" action="/account/tokens">
      ${textField(form, { name: 'name', label: 'Name', hint: 'What it is for, such as ci', isRequired: true, maxLength: 100 })}
      ${textField(form, { name: 'expires_in_days', label: 'Days until it expires', hint: `1 to ${MAX_TOKEN_DAYS}`, isRequired: true, maxLength: 3 })}
      ${scopesField(form)}
      <div class="actions"><button class="primary">Create</button> <a class="button" href="/account">Cancel</a></div>
    </form>`;
  return layout('Create a personal token', content, 'narrow');
}

function scopesField(form: FormState): Html {
  const isWrong = form.problems.some(({ field }) => field.startsWith('scopes'));
  return html`<fieldset class="field" ${isWrong ? html`aria-describedby="scopes-problem"` : ''}>
    <legend>Scopes</legend>
    <div class="scopes">
      ${SCOPES.map(
        (scope) =>
          html`<label class="check"
            ><input
              type="checkbox"
              name="${SCOPE_FIELD}${scope}"
              value="${TICKED}"
              ${form.values[SCOPE_FIELD + scope] === TICKED ? 'checked' : ''}
            />
            <code>${scope}</code></label
          >`,
      )}
    </div>
    <p class="hint">
      A token with sidecars:write can enrol a sidecar, which receives all credentials that you can use.
    </p>
    ${problemOf(form, 'scopes')}
  </fieldset>`;
}

/** The only page that shows the token. */
export function createdTokenPage({ name, token, scopes, expires_at: expires }: CreatedToken): Page {
  const content = html`${pageHeader({ title: 'Copy the token now', above: ACCOUNT_PAGE })}
    ${alert('warn', 'No page and no reply shows it again: only its hash is stored.')}
    <div class="panel">
      ${codeBlock(token)}
      ${definitionList([
        ['Name', foreignText(name)],
        ['Scopes', html`<code>${scopes.join(', ')}</code>`],
        ['Expires', writtenTime(expires)],
        ['Sent as', html`<code>Authorization: Bearer …</code>`],
      ])}
      <div class="actions"><a class="button primary" href="/account">I have it</a></div>
    </div>`;
  return layout('Copy the token now', content, 'narrow');
}

export function tokenRevocationPage({ id, name }: TokenRecord, form: FormState): Page {
  return confirmPage({
    title: 'Revoke a token?',
    consequence: html`The next call with <strong>${foreignText(name)}</strong> is refused, and the token cannot be
      restored.`,
    name,
    action: `/account/tokens/${id}/revoke`,
    button: 'Revoke it',
    hidden: {},
    above: ACCOUNT_PAGE,
    form,
  });
}
