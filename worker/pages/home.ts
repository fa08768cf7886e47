import { html } from 'hono/html';
import type { StoredAuditEvent } from '../../shared/wire/audit_events.ts';
import type { Overview } from '../services/overview.ts';
import { type Html, layout } from './layout.ts';

export function homePage(overview: Overview): Html {
  const { user, enterprise, recent } = overview;
  return layout(
    'Overview',
    html`<h1>Overview</h1>
      <p>
        Signed in as <strong>${user.display_name}</strong> <span class="quiet">${user.role} of ${enterprise.name}</span>
      </p>
      <form method="post" action="/auth/logout"><button>Sign out</button></form>
      <p><a href="/identities">Ways you sign in</a></p>
      <ul class="counts">
        <li><strong>${overview.secrets}</strong> secrets</li>
        <li><strong>${overview.bindings}</strong> host bindings</li>
        <li><strong>${overview.sidecars}</strong> sidecars</li>
      </ul>
      <h2>Recent events</h2>
      ${
        recent.length === 0
          ? html`<p>None yet. The first one comes with your first secret:</p>
              <pre>svc secret set user/demo</pre>`
          : eventTable(recent)
      }`,
  );
}

function eventTable(events: readonly StoredAuditEvent[]): Html {
  return html`<div class="scroll">
    <table>
      <thead>
        <tr>
          <th scope="col">Time (UTC)</th>
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
  const about = data['svc.control.credential_ref'] ?? data['svc.control.resource'] ?? '';
  const request = [data['svc.proxy.method'], data['svc.proxy.upstream.host']]
    .filter((part) => part !== undefined)
    .join(' ');
  const bound = data['svc.proxy.binding.host'];
  const change = bound === undefined ? about : `${bound} with ${about}`;
  const outcome = data['svc.proxy.reason'] ?? data['svc.proxy.upstream.status'] ?? '';
  return html`<tr>
    <td class="time"><time datetime="${time}">${shortTime(time)}</time></td>
    <td>${type}</td>
    <td>${request === '' ? change : request}</td>
    <td>${outcome}</td>
  </tr>`;
}

/** `2026-01-02 03:04:05`; the time itself is in UTC. */
function shortTime(time: string): string {
  return time.slice(0, 19).replace('T', ' ');
}
