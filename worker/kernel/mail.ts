import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { Outbound } from './outbound.ts';

/** Sends mail. */
export interface Mail {
  /** The error is a sentence that names no recipient. */
  send(message: MailMessage): Promise<Result<void, string>>;
}

interface MailMessage {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

export type PrintMail = (entry: Readonly<Record<string, string>>) => void;

/** Prints each mail as one line for the person who started the program. Local mode has no other way to send mail. */
export function createPrintedMail(print: PrintMail): Mail {
  return {
    async send({ to, subject, text }) {
      print({ level: 'info', message: 'mail', to, subject, text });
      return ok(undefined);
    },
  };
}

interface MailService {
  readonly url: string;
  readonly token: Secret;
  readonly from: string;
}

/** Sends mail by a service that accepts `{from, to, subject, text}` as JSON with a bearer token. */
export function createPostedMail(settings: MailService, outbound: Outbound): Mail {
  return {
    async send({ to, subject, text }) {
      const called = await outbound.call({
        method: 'POST',
        url: settings.url,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${settings.token.reveal()}` },
        body: new TextEncoder().encode(JSON.stringify({ from: settings.from, to: [to], subject, text })),
      });
      if (!called.ok) return err(called.error.message);
      const { status } = called.value;
      return status >= 200 && status < 300 ? ok(undefined) : err(`the mail service answered with status ${status}`);
    },
  };
}
