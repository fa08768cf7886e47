import { html } from 'hono/html';
import type { Owner } from '../../../shared/model/host_binding.ts';
import { isReservedVaultPath, VAULT_SCHEME } from '../../../shared/model/vault_path.ts';
import type { OwnedReference, ReferenceState } from '../../services/bindings/reference_states.ts';
import { badge } from '../components/badge.ts';
import { pathWith } from '../components/pager.ts';
import type { Html } from '../frame/html.ts';

const SECRETS_OF: { readonly [O in Owner]: string } = {
  personal: 'a personal secret',
  enterprise: 'a secret of the enterprise',
};

/** The references that a field with the list `references` offers. */
export function referenceList(references: readonly string[]): Html {
  return html`<datalist id="references">
    ${references.map((reference) => html`<option value="${reference}"></option>`)}
  </datalist>`;
}

/** Whether a binding's secret is stored for its owner, and what to do if not. */
export function referenceWords({ owner, reference }: OwnedReference, state: ReferenceState): Html {
  if (state === 'stored') return badge('good', 'Stored');
  const path = reference.slice(VAULT_SCHEME.length);
  if (isReservedVaultPath(path))
    return html`${badge('bad', 'Not stored')}
      <span class="sub"
        >Its requests get status 503 until <a href="/connectors">the connector</a> has its login.</span
      >`;
  const store = html`<a href="${pathWith('/secrets/new', { path, owner })}">store ${SECRETS_OF[owner]} there</a>`;
  if (state === 'missing')
    return html`${badge('bad', 'Not stored')} <span class="sub">Its requests get status 503 until you ${store}.</span>`;
  const other = owner === 'personal' ? 'enterprise' : 'personal';
  return html`${badge('bad', 'Another owner’s')}
    <span class="sub"
      >At this path is only ${SECRETS_OF[other]}, and
      ${owner === 'personal' ? 'a personal binding' : 'the enterprise’s binding'} uses none. Requests get status 503
      until you ${store}.</span
    >`;
}
