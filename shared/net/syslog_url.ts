import { err, ok, type Result } from '../model/result.ts';
import { normaliseHost } from './host.ts';

/** The port of syslog over TLS (RFC 5425 section 4.1). */
const SYSLOG_TLS_PORT = 6514;
const FORM = /^syslog\+tls:\/\/([^/?#@:[\]]+|\[[0-9a-fA-F:.]+\])(?::(\d{1,5}))?\/?$/;

/** A receiver of syslog over TLS: a host without brackets, and a port. */
export interface SyslogReceiver {
  readonly host: string;
  readonly port: number;
}

/** Reads `syslog+tls://HOST[:PORT]`. The error is a predicate of the URL, and quotes nothing of it. */
export function parseSyslogUrl(text: string): Result<SyslogReceiver, string> {
  const [, name, portText] = FORM.exec(text) ?? [];
  if (name === undefined) return err('is not a receiver of syslog: write syslog+tls://logs.example.com:6514');
  const port = portText === undefined ? SYSLOG_TLS_PORT : Number(portText);
  if (port < 1 || port > 65_535) return err('has a port that is none: use one from 1 to 65535');
  const host = normaliseHost(name);
  return host.ok ? ok({ host: host.value.replace(/^\[|\]$/g, ''), port }) : err(host.error.message);
}
