import { html } from 'hono/html';
import { toSentence } from '../../../shared/model/sentence.ts';
import { type ApiError, ERROR_STATUS } from '../../../shared/wire/errors.ts';
import { alert } from '../components/alert.ts';
import { pageHeader } from '../components/page_header.ts';
import { layout, type Page } from './layout.ts';
import { pageAbove } from './navigation.ts';
import { withoutCalls } from './page_words.ts';

interface Asked {
  readonly path: string;
  readonly requestId: string;
}

/** What failed, the way back to the list that it is of, and the request id in the control plane's log. */
export function problemPage({ code, message }: ApiError, { path, requestId }: Asked): Page {
  const title = ERROR_STATUS[code] === 404 ? 'Not found' : 'That did not work';
  const above = pageAbove(path);
  const content = html`${pageHeader({ title })} ${alert('bad', html`<p>${toSentence(withoutCalls(message))}</p>`)}
    <p class="quiet small">Request <code>${requestId}</code></p>
    <div class="actions">
      ${above === null ? '' : html`<a class="button primary" href="${above.path}">${above.title}</a>`}
      ${above?.path === '/' ? '' : html`<a class="button" href="/">Overview</a>`}
    </div>`;
  return layout(title, content, 'narrow');
}
