import { html } from 'hono/html';
import type { WaitingProgram } from '../../tokens/device_approval.ts';
import { alert } from '../components/alert.ts';
import { definitionList } from '../components/definition_list.ts';
import { writtenTime } from '../components/time.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/**
 * The form for the code that a program shows. The code is typed and never in a link, because anybody can send a link.
 */
export function devicePage(problem: string | null): Page {
  const content = html`${pageHeader({ title: 'Connect a device', lead: html`The code is shown where you ran <code data-command>svc login</code>.` })}
    ${problem === null ? '' : alert('bad', html`<strong>${problem}</strong>`)}
    <form method="post" action="/device" class="panel">
      <div class="field">
        <label for="user_code"
          >Type the code that <code data-command>svc login</code> shows in your own terminal.</label
        >
        <input
          class="mono"
          id="user_code"
          name="user_code"
          required
          autofocus
          autocomplete="off"
          autocapitalize="characters"
          spellcheck="false"
          maxlength="20"
          placeholder="XXXX-XXXX"
        />
      </div>
      <div class="actions"><button type="submit" class="primary">Continue</button></div>
      <p class="quiet small">
        Did somebody send you a code? The sender could then act as you: do not type it, and close this page.
      </p>
    </form>`;
  return layout('Connect a device', content, 'narrow');
}

/** The program and the question. */
export function deviceQuestionPage(program: WaitingProgram, typed: string): Page {
  const content = html`${pageHeader({ title: 'Sign this program in as you?' })}
    <div class="panel">
      ${about(program)}
      <p>
        It will be able to do everything that you can do here, and to enrol a sidecar that receives your credentials.
      </p>
      <form method="post" action="/device/decide">
        <input type="hidden" name="user_code" value="${typed}" />
        <div class="actions">
          <button type="submit" class="primary" name="decision" value="approve">Sign it in</button>
          <button type="submit" name="decision" value="deny">Deny</button>
        </div>
      </form>
      <p class="quiet small">Deny it unless you started it yourself, a moment ago, at this address.</p>
    </div>`;
  return layout('Connect a device?', content, 'narrow');
}

export function deviceDecidedPage(program: WaitingProgram, decision: 'approve' | 'deny'): Page {
  const title = decision === 'approve' ? 'Signed in' : 'Denied';
  const content = html`${pageHeader({ title })}
    <div class="panel">
      ${about(program)}
      <p>
        ${decision === 'approve' ? 'Return to your terminal: the program continues there.' : 'It was not signed in.'}
      </p>
    </div>`;
  return layout(title, content, 'narrow');
}

function about({ client, address, requestedAt }: WaitingProgram): Html {
  return definitionList([
    ['It calls itself', foreignText(client)],
    ['It called from', address],
    ['At', writtenTime(requestedAt)],
  ]);
}
