import { html } from 'hono/html';
import type { StoredAuditEvent } from '../../shared/wire/audit_events.ts';
import type { Overview } from '../services/overview.ts';
import { type Html, layout } from './layout.ts';

/** The page for a browser that is not signed in. */
export function signInPage(): Html {
  return layout(
    'Sign in',
    html`<h1>svc control plane</h1>
      <p>
        This browser is not signed in. <code>svc up</code> prints a sign-in link when it starts, and this makes another
        one:
      </p>
      <pre>svc api POST /v1/sign-in-links</pre>
      <p>The <a href="/docs">API reference</a> needs no sign-in.</p>`,
  );
}

export function homePage(overview: Overview): Html {
  const { user, enterprise, recent } = overview;
  return layout(
    'Overview',
    html`<h1>svc control plane</h1>
      <p>
        Signed in as <strong>${user.display_name}</strong> (${user.role} of ${enterprise.name}).
        <a href="/docs">API reference</a>
      </p>
      <ul class="counts">
        <li><strong>${overview.secrets}</strong> secrets</li>
        <li><strong>${overview.bindings}</strong> host bindings</li>
        <li><strong>${overview.sidecars}</strong> sidecars</li>
      </ul>
      <h2>Recent events</h2>
      ${recent.length === 0 ? html`<p>None yet.</p>` : eventTable(recent)}`,
  );
}

function eventTable(events: readonly StoredAuditEvent[]): Html {
  return html`<div class="scroll">
    <table>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">Event</th>
          <th scope="col">What</th>
          <th scope="col">Outcome</th>
        </tr>
      </thead>
      <tbody>
        ${events.map((event) => eventRow(event))}
      </tbody>
    </table>
  </div>`;
}

function eventRow({ time, type, data }: StoredAuditEvent): Html {
  const request = [data['svc.proxy.method'], data['svc.proxy.upstream.host']]
    .filter((part) => part !== undefined)
    .join(' ');
  const what = request === '' ? (data['svc.control.credential_ref'] ?? data['svc.control.resource'] ?? '') : request;
  const outcome = data['svc.proxy.reason'] ?? data['svc.proxy.upstream.status'] ?? '';
  return html`<tr>
    <td><time datetime="${time}">${time}</time></td>
    <td>${type}</td>
    <td>${what}</td>
    <td>${outcome}</td>
  </tr>`;
}
