import { alertText } from './alert_text.ts';
import type { HttpSinkKind } from './sink_kind.ts';

/** A message about requests that wait for an approval, for an incoming webhook as Slack and others have it. */
export const slackSink: HttpSinkKind = {
  isSigned: false,
  isAlert: true,
  async write(_, batch) {
    const body = new TextEncoder().encode(JSON.stringify({ text: alertText(batch, escapeText) }));
    return { headers: { 'content-type': 'application/json' }, body };
  },
};

/** Names are chosen by others: unescaped, `<!channel>` or a link in one would be carried out. */
function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
