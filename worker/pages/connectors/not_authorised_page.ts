import { html } from 'hono/html';
import { alert } from '../components/alert.ts';
import { pageHeader } from '../components/page_header.ts';
import { layout, type Page } from '../frame/layout.ts';
import { toSentence } from '../../../shared/model/sentence.ts';

/** The page to continue with after an authorisation. */
export interface WayBack {
  readonly path: string;
  readonly title: string;
}

/** Why an authorisation failed, with a link back. `message` ends without a full stop. */
export function notAuthorisedPage(message: string, back: WayBack): Page {
  const content = html`${pageHeader({ title: 'Not authorised' })} ${alert('bad', html`<p>${toSentence(message)}</p>`)}
    <p>Nothing was stored, and an earlier authorisation is unchanged.</p>
    <div class="actions"><a class="button primary" href="${back.path}">${back.title}</a></div>`;
  return layout('Not authorised', content, 'narrow');
}
