import type { MailSinkKind } from './sink_kind.ts';
import { alertText } from './alert_text.ts';

/** A mail about requests that wait for an approval. */
export const mailSink: MailSinkKind = {
  isSigned: false,
  isAlert: true,
  compose: (batch) => ({ subject: subjectOf(batch.events.length), text: alertText(batch, (name) => name) }),
};

/** It names nothing that others chose: subjects are shown in lists and on locked screens. */
function subjectOf(count: number): string {
  return count === 1 ? 'A request needs an approval' : `${count} requests need an approval`;
}
