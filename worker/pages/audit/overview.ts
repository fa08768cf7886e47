import { html } from 'hono/html';
import type { SidecarRecord } from '../../../shared/wire/sidecars.ts';
import type { Overview } from '../../services/audit/overview.ts';
import { alert } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { codeBlock } from '../components/code_block.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { timeAgo } from '../components/time.ts';
import { sidecarCommand } from '../people/sidecars.ts';
import { activeAgentsPanel, activityChart, newestWay, topHostsPanel } from './activity.ts';
import { eventTable } from './event_table.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/** A sidecar reports at least once a minute; after this time without a report it is shown as away. */
const AWAY_MS = 3 * 60_000;

/** The first page: next steps, recent decisions and connected sidecars. */
export function overviewPage(overview: Overview, nowMs: number): Page {
  const { user, enterprise, pendingApprovals, handedOut, recent, activity, nameOf } = overview;
  const content = html`${pageHeader({
      title: 'Overview',
      lead: overview.isLocal
        ? 'What agents ask for, and what svc decides, as it happens.'
        : html`Signed in as ${user.display_name}, ${user.role} of ${enterprise.name}`,
      actions: html`<a class="button" href="/bindings">Explain a request</a>
        <a class="button" href="/secrets/new">Store a secret</a>
        <a class="button primary" href="/services">Connect a service</a>`,
    })}
    <div class="stack page-part" id="standing">
      ${tiles(overview)} ${isSetUp(overview) ? '' : firstSteps(overview)}
      ${pendingApprovals > 0 ? approvalsHint(pendingApprovals) : ''} ${handedOut > 0 ? unsealedHint(handedOut) : ''}
    </div>
    <section class="panel flush" aria-labelledby="activity-title">
      <div class="panel-head">
        <h2 id="activity-title">Activity</h2>
        <span class="live"><span data-live-of="recent" role="status">As of now</span></span>
      </div>
      <div id="way">${newestWay(activity.newest, nameOf)}</div>
      <div id="activity">${activityChart(activity)}</div>
    </section>
    <div class="columns page-part" id="busy">
      ${activity.newest === null ? '' : html`${activeAgentsPanel(activity, nameOf, nowMs)} ${topHostsPanel(activity)}`}
    </div>
    <section class="panel flush" aria-labelledby="recent-title">
      <div class="panel-head">
        <h2 id="recent-title">Recent decisions</h2>
        <a href="/audit">All of the audit log</a>
      </div>
      <div id="recent" data-island="live-list" data-events="" data-also="standing way activity busy sidecars">
        ${recent.length === 0 ? noEvents() : eventTable('Recent decisions', recent, nowMs, nameOf)}
      </div>
    </section>
    ${sidecarPanel(overview, nowMs)}`;
  return layout('Overview', content);
}

function tiles({ secrets, bindings, sidecars, pendingApprovals, handedOut }: Overview): Html {
  const all = [
    { count: secrets, words: secrets === 1 ? 'secret' : 'secrets', path: '/secrets' },
    { count: bindings, words: bindings === 1 ? 'binding' : 'bindings', path: '/bindings' },
    { count: handedOut, words: handedOut === 1 ? 'credential exposed' : 'credentials exposed', path: '/report' },
    { count: pendingApprovals, words: 'waiting for approval', path: '/approvals' },
    { count: sidecars, words: sidecars === 1 ? 'sidecar' : 'sidecars', path: '#sidecars' },
  ];
  return html`<ul class="tiles">
    ${all.map(
      ({ count, words, path }) =>
        html`<li>
          <a href="${path}"><strong>${count}</strong> ${words}</a>
        </li>`,
    )}
  </ul>`;
}

function isSetUp(overview: Overview): boolean {
  return hasCredential(overview) && overview.sidecars > 0 && overview.hasRequests;
}

/** Whether a request can get a credential: by a binding, or by an operation of a connector. */
function hasCredential({ secrets, bindings, activeConnectors }: Overview): boolean {
  return (secrets > 0 && bindings > 0) || activeConnectors > 0;
}

function firstSteps(overview: Overview): Html {
  const { sidecars, hasRequests, isLocal } = overview;
  return html`<section class="panel flush" aria-labelledby="steps-title">
    <div class="panel-head"><h2 id="steps-title">Seal your first credential</h2></div>
    <ol class="steps">
      ${step(sidecars > 0, 'Connect a sidecar', html`It runs next to your agents and adds credentials to their requests.`, sidecarCommand(isLocal))}
      ${step(
        hasCredential(overview),
        html`<a href="/services">Connect a service</a>`,
        html`Choose one and paste its token, which is stored encrypted. Or <a href="/secrets/new">store a secret</a> and
          <a href="/bindings/new">bind it to a host</a> yourself.`,
        'svc seal github',
      )}
      ${step(hasRequests, 'Run an agent', html`Its requests appear below, each with the reason for its decision.`, 'svc run -- curl https://api.github.com/user')}
    </ol>
  </section>`;
}

function step(isDone: boolean, title: Html | string, words: Html, command: string): Html {
  return html`<li class="${isDone ? 'done' : ''}">
    <div class="stack">
      <h3>${title}${isDone ? html` <span class="hidden-but-read">(done)</span>` : ''}</h3>
      ${
        isDone
          ? ''
          : html`<p class="quiet">${words}</p>
              ${codeBlock(command)}`
      }
    </div>
  </li>`;
}

function approvalsHint(count: number): Html {
  const words = count === 1 ? 'One request waits' : `${count} requests wait`;
  return html`<div class="alert warn" role="status">
    <p><strong>${words} for your approval.</strong> A request is held for a minute. <a href="/approvals">Decide</a></p>
  </div>`;
}

function unsealedHint(count: number): Html {
  const words = count === 1 ? 'One credential was released' : `${count} credentials were released`;
  return alert(
    'warn',
    html`<p>
      <strong>${words} to a program in plaintext and not replaced since.</strong>
      <a href="/report">See where it was used, and how to seal it</a>
    </p>`,
  );
}

function noEvents(): Html {
  const next = 'Events appear with your first secret, or with the first request of an agent.';
  return emptyState({ title: 'No decisions yet', next, command: 'svc secret set user/demo' });
}

function sidecarPanel({ sidecarList: sidecars, isLocal }: Overview, nowMs: number): Html {
  return html`<section class="panel flush" id="sidecars" aria-labelledby="sidecars-title">
    <div class="panel-head"><h2 id="sidecars-title">Sidecars</h2></div>
    ${
      sidecars.length === 0
        ? emptyState({
            title: 'No sidecar is connected',
            next: 'Without one, requests of your agents get no credentials.',
            command: sidecarCommand(isLocal),
          })
        : dataTable<SidecarRecord>({
            caption: 'Sidecars',
            rows: sidecars,
            columns: [
              { title: 'Name', cell: ({ name, id }) => html`${foreignText(name)} <span class="sub mono">${id}</span>` },
              { title: 'State', cell: (sidecar) => sidecarState(sidecar, nowMs) },
              {
                title: 'Last seen',
                cell: ({ last_seen_at: seen }) => (seen === null ? 'never' : timeAgo(seen, nowMs)),
              },
              { title: 'Added', cell: ({ created_at: created }) => timeAgo(created, nowMs) },
            ],
          })
    }
  </section>`;
}

function sidecarState({ last_seen_at: seen, revoked_at: revoked }: SidecarRecord, nowMs: number): Html {
  if (revoked !== null) return badge('plain', 'Revoked');
  if (seen === null) return badge('warn', 'Not seen yet');
  return nowMs - Date.parse(seen) <= AWAY_MS ? badge('good', 'Connected') : badge('warn', 'Away');
}
