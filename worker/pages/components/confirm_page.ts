import { html } from 'hono/html';
import type { Content, Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { type FormState, formRefusal, textField } from './form_field.ts';
import { pageHeader } from './page_header.ts';

interface Confirmation {
  readonly title: string;
  /** What the action destroys. */
  readonly consequence: Content;
  /** The same in detail, as a list. */
  readonly effects?: Content;
  /** What the user must type. */
  readonly name: string;
  readonly action: string;
  readonly button: string;
  /** The way back; "Keep it" by default. */
  readonly keep?: string;
  readonly hidden: Readonly<Record<string, string>>;
  readonly above: { readonly path: string; readonly title: string };
  readonly form: FormState;
  /** There is nothing to destroy, so nothing is asked: `consequence` says why. */
  readonly isNeedless?: boolean;
}

/** Asks for confirmation before something is destroyed: the user types its name. */
export function confirmPage(confirmation: Confirmation): Page {
  const { title, consequence, effects, above, form, isNeedless = false } = confirmation;
  const content = html`${pageHeader({ title, above })} ${formRefusal(form, ['confirm'])}
    <div class="panel">
      <p>${consequence}</p>
      ${effects ?? ''} ${isNeedless ? wayBack(above) : question(confirmation)}
    </div>`;
  return layout(title, content, 'narrow');
}

function wayBack({ path, title }: Confirmation['above']): Html {
  return html`<div class="actions"><a class="button" href="${path}">Back to ${title}</a></div>`;
}

function question({ name, action, button, keep = 'Keep it', hidden, above, form }: Confirmation): Html {
  const fields = Object.entries(hidden);
  return html`<form class="stack" method="post" action="${action}">
    ${fields.map(([key, value]) => html`<input type="hidden" name="${key}" value="${value}" />`)}
    ${textField(form, { name: 'confirm', label: `Type ${name} to confirm`, isRequired: true, isMono: true })}
    <div class="actions">
      <button class="danger">${button}</button>
      <a class="button" href="${above.path}">${keep}</a>
    </div>
  </form>`;
}
