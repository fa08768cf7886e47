import { html } from 'hono/html';
import type { InstallPreview, MarketplaceInput } from '../../../shared/wire/marketplace.ts';
import { alert } from '../components/alert.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { installSteps } from '../components/wizard_steps.ts';
import type { Html } from '../frame/html.ts';
import { inputField, inputFields } from './install_fields.ts';
import { inputTable, installPreview } from './install_preview.ts';
import { hasIsolationChoice, isolationField } from './isolation_field.ts';
import { layout, type Page } from '../frame/layout.ts';
import { entryPath, freshnessWords, type InstallSubject, ruleAlert } from './marketplace_words.ts';
import { type OwnerChoice, ownerField } from '../bindings/owner_field.ts';

export interface InstallView {
  readonly subject: InstallSubject;
  readonly preview: InstallPreview;
  /** Why the rules of the enterprise do not let it run; null if they do. */
  readonly rule_problem: string | null;
  /** Whether a local server runs in a container, because a rule says so. */
  readonly isBoxed: boolean;
  /** Identifies the preview that the user reviewed. */
  readonly reviewed: string;
  readonly freshness: { readonly fetched_at: string; readonly stale: boolean };
  readonly nowMs: number;
}

/** The first step: exactly what would be started. */
export function installReviewPage(view: InstallView): Page {
  const { subject, preview, freshness, nowMs } = view;
  const next = pathWith('/mcp-servers/install', { ...subject, step: 'settings' });
  const content = html`${head('Review what is installed', subject)} ${installSteps('Review')} ${ruleAlert(view)}
    ${freshnessWords(freshness, nowMs)}
    <section class="panel" aria-labelledby="preview-title">
      <h2 id="preview-title">What is started</h2>
      ${installPreview(preview)}
      ${definitionList([
        ['Version', preview.version === null ? null : foreignText(preview.version)],
        ['Isolation', preview.mode === 'local' && view.isBoxed ? 'In a container, by a rule of your enterprise' : null],
      ])}
    </section>
    ${
      preview.inputs.length === 0
        ? ''
        : html`<section class="panel flush" aria-labelledby="inputs-title">
            <div class="panel-head"><h2 id="inputs-title">What it asks for</h2></div>
            ${inputTable(preview.inputs)}
          </section>`
    }
    <div class="actions">
      ${view.rule_problem === null ? html`<a class="button primary" href="${next}">Continue</a>` : ''}
      <a class="button" href="${entryPath(subject.registry_id)}">Cancel</a>
    </div>`;
  return layout('Install a server', content, 'narrow');
}

/** The inputs of the settings step; secrets that can be stored later come after the install. */
export function inputsGivenNow({ inputs }: Pick<InstallPreview, 'inputs'>): readonly MarketplaceInput[] {
  return inputs.filter(({ secret, credential }) => !secret || credential === null);
}

/** The second step: the name, the owner and inputs that are not secret. */
export function installSettingsPage(view: InstallView, form: FormState, owners: OwnerChoice): Page {
  const { subject, preview, reviewed } = view;
  const inputs = inputsGivenNow(preview);
  const fields = ['name', 'owner', 'isolation', ...inputs.map((_, index) => inputField(index))];
  const hidden = Object.entries({ ...subject, reviewed });
  const content = html`${head('Settings', subject)} ${installSteps('Settings')} ${formRefusal(form, fields)}
    <form class="panel stack" method="post" action="/mcp-servers/install">
      ${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
      ${inputFields(form, inputs)}
      ${textField(form, { name: 'name', label: 'Name (optional)', hint: 'Prefix of the names of its tools. Empty: made from the registry name.', isMono: true, maxLength: 48, placeholder: 'weather' })}
      ${ownerField(form, owners)} ${!view.isBoxed && hasIsolationChoice(preview) ? isolationField(form) : ''}
      ${laterWords(preview)}
      <div class="actions">
        <button class="primary">Install</button>
        <a class="button" href="${pathWith('/mcp-servers/install', { ...subject })}">Back</a>
      </div>
    </form>`;
  return layout('Settings of the server', content, 'narrow');
}

function laterWords({ inputs }: InstallPreview): Html | string {
  const count = inputs.length - inputsGivenNow({ inputs }).length;
  if (count === 0) return '';
  return html`<p class="quiet small">
    ${count === 1 ? 'Its credential is' : `Its ${count} credentials are`} asked for in the next step. Installing starts
    nothing.
  </p>`;
}

/** The entry changed since the user reviewed it. */
export function changedSinceReviewPage(view: InstallView): Page {
  const content = html`${head('It changed meanwhile', view.subject)}
    ${alert('warn', html`<p><strong>The registry’s entry changed after you reviewed it.</strong> Nothing was installed.</p>`)}
    <div class="actions">
      <a class="button primary" href="${pathWith('/mcp-servers/install', { ...view.subject })}">Review it again</a>
    </div>`;
  return layout('It changed meanwhile', content, 'narrow');
}

function head(title: string, { registry_id: name, version }: InstallSubject): Html {
  return pageHeader({
    title,
    lead: html`<code>${foreignText(name)}</code> ${foreignText(version)}`,
    above: { path: entryPath(name), title: 'Back to its entry' },
  });
}
