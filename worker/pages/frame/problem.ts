import { html } from 'hono/html';
import { alert } from '../components/alert.ts';
import { pageHeader } from '../components/page_header.ts';
import { layout, type Page } from './layout.ts';

/** What failed, and the request id in the control plane's log. */
export function problemPage(message: string, requestId: string): Page {
  const content = html`${pageHeader({ title: 'That did not work' })} ${alert('bad', html`<p>${message}</p>`)}
    <p class="quiet small">Request <code>${requestId}</code></p>
    <div class="actions"><a class="button" href="/">Overview</a></div>`;
  return layout('That did not work', content, 'narrow');
}
