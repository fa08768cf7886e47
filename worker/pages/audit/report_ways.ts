import { html } from 'hono/html';
import type { OpenCredential } from '../../services/audit/sealability_report.ts';
import { pathWith } from '../components/pager.ts';
import type { Html } from '../frame/html.ts';

/**
 * What would seal a credential: a binding, with a placeholder if the client needs one, or a connector; then a new value.
 */
export function sealingWays(credential: OpenCredential): readonly Html[] {
  const { path, owner, ref, bindings, unsealed, connectors } = credential;
  const isBound = bindings.length > 0;
  return [
    ...(isBound ? [] : bindingWays(credential)),
    html`A placeholder, for a client that does not start without a credential:
      <a href="${isBound ? `/bindings/${bindings[0]?.id ?? ''}` : newBinding({ ref, owner, host: unsealed?.host })}"
        >in the binding</a
      >, under “a placeholder for the agent”. It is not a secret; the proxy swaps it for the credential.`,
    ...(isBound || unsealed === null ? [] : connectorWays(connectors, unsealed.host)),
    ...(unsealed === null
      ? []
      : [
          html`<a href="${pathWith('/secrets/new', { path, owner })}">A new value</a> from its issuer: copies of the
            exposed one may be anywhere.`,
        ]),
  ];
}

function bindingWays({ templates, ref, owner, unsealed }: OpenCredential): readonly Html[] {
  if (templates.length === 0) {
    return [html`<a href="${newBinding({ ref, owner, host: unsealed?.host })}">A binding</a> to its host.`];
  }
  return templates.map(
    ({ name, title }) =>
      html`<a href="${newBinding({ from: name, ref, owner })}">A binding by the template ${title}</a>`,
  );
}

function connectorWays(connectors: OpenCredential['connectors'], host: string | null): readonly Html[] {
  if (connectors.length === 0) {
    return [
      html`<a href="/connectors/install">A connector</a> for <code>${host ?? 'its host'}</code>, which allows only the
        listed operations.`,
    ];
  }
  return connectors.map(
    ({ id, fqn }) =>
      html`The connector <a class="mono" href="/connectors/${id}">${fqn}</a> is installed for
        <code>${host ?? ''}</code>: give it the credential.`,
  );
}

function newBinding(start: {
  readonly ref: string;
  readonly owner: string;
  readonly from?: string;
  readonly host?: string | null | undefined;
}): string {
  const { ref, owner, from, host } = start;
  return pathWith('/bindings/new', { from, host: host ?? undefined, credential_ref: ref, owner });
}
