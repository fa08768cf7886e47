import type { Failure } from '../../shared/model/failure.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { Outbound, OutboundFailureReason } from './outbound.ts';
import { readRetryAfter } from './retry_after.ts';

/** Sends mail. */
export interface Mail {
  /** The message of a failure is a sentence that names no recipient. */
  send(message: MailMessage): Promise<Result<void, MailFailure>>;
}

/** `mail_refused`: the service will never send this message to this recipient. `mail_failed`: it may, later. */
export interface MailFailure extends Failure<'mail_refused' | 'mail_failed'> {
  /** How long the service asks not to be called. */
  readonly afterMs?: number;
}

/** Statuses that say that what was sent will never be accepted: sending it again would not help. */
export const NEVER_ACCEPTED: ReadonlySet<number> = new Set([400, 413, 414, 415, 422]);

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
export function createPostedMail(settings: MailService, outbound: Outbound, now: () => number): Mail {
  return {
    async send({ to, subject, text }) {
      const called = await outbound.call({
        method: 'POST',
        url: settings.url,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${settings.token.reveal()}` },
        body: new TextEncoder().encode(JSON.stringify({ from: settings.from, to: [to], subject, text })),
      });
      // Without the name of its host: the message is told to people who do not run the installation.
      if (!called.ok)
        return err({ reason: 'mail_failed', message: `the mail service ${PROBLEMS[called.error.reason]}` });
      const { status, retryAfter } = called.value;
      if (status >= 200 && status < 300) return ok(undefined);
      const reason = NEVER_ACCEPTED.has(status) ? 'mail_refused' : 'mail_failed';
      const afterMs = readRetryAfter(retryAfter, now());
      const message = `the mail service answered with status ${status}`;
      return err({ reason, message, ...(afterMs !== null && { afterMs }) });
    },
  };
}

const PROBLEMS: Readonly<Record<OutboundFailureReason, string>> = {
  upstream_unreachable: 'could not be reached',
  upstream_tls_failed: 'has no valid certificate',
  upstream_invalid_reply: 'sent an invalid answer',
  upstream_response_too_large: 'sent too large an answer',
};

/** The name that the outcome of mail is noted under. */
export const MAIL = 'mail';

/** Notes how each mail went: null if the service answered for it, also if it refused one recipient for good. */
export function createNotedMail(mail: Mail, note: (problem: string | null) => void): Mail {
  return {
    async send(message) {
      const sent = await mail.send(message);
      note(sent.ok || sent.error.reason === 'mail_refused' ? null : sent.error.message);
      return sent;
    },
  };
}
