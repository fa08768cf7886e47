import { html } from 'hono/html';
import type { SubscribedBrowser } from '../../services/push/push_subscriptions.ts';
import { badge } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { clientWords } from './browser_words.ts';

/** Notifications in the user's browsers. */
export interface PushView {
  /** What browsers subscribe with. */
  readonly key: string;
  readonly browsers: readonly SubscribedBrowser[];
}

/** The browsers that are told of requests, and a button for this one. It needs scripts: without them nothing can be told. */
export function pushPanel({ key, browsers }: PushView, nowMs: number): Html {
  const isOn = browsers.some(({ isCurrent }) => isCurrent);
  return html`<section class="panel flush" aria-labelledby="push-title">
    <div class="panel-head"><h2 id="push-title">Notifications</h2></div>
    ${browsers.length === 0 ? '' : browserTable(browsers, nowMs)}
    <div class="empty">
      <p>
        A browser can tell you of a request that needs your approval, also while no page of svc is open. Its push
        service learns when, but not what: the message is encrypted. It ends when you sign the browser out.
      </p>
      <form method="post" action="/account/push" data-island="push" data-key="${key}">
        <input type="hidden" name="endpoint" /><input type="hidden" name="p256dh" /><input type="hidden" name="auth" />
        <button class="compact" disabled>${isOn ? 'Renew in this browser' : 'Notify me in this browser'}</button>
        <output class="small"></output>
      </form>
    </div>
  </section>`;
}

function browserTable(browsers: readonly SubscribedBrowser[], nowMs: number): Html {
  return dataTable<SubscribedBrowser>({
    caption: 'Browsers with notifications',
    rows: browsers,
    columns: [
      {
        title: 'Browser',
        cell: ({ client, host, isCurrent }) =>
          html`<strong>${clientWords(client, 'no name')}</strong> ${isCurrent ? badge('good', 'this one') : ''}
            <span class="sub mono">${host}</span>`,
      },
      {
        title: 'State',
        cell: ({ problem }) =>
          problem === null ? badge('good', 'on') : html`${badge('warn', 'failing')} <code>${problem}</code>`,
      },
      { title: 'Since', cell: ({ createdAt }) => timeAgo(createdAt, nowMs) },
      {
        title: 'Turn off',
        isActions: true,
        cell: ({ id, client }) =>
          html`<form method="post" action="/account/push/${id}/end">
            <button class="compact danger">Turn off<span class="hidden-but-read"> in ${client}</span></button>
          </form>`,
      },
    ],
  });
}
