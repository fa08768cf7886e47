/** The alerts by which an upstream says that it wants a client certificate, or not this one, as OpenSSL names them. */
const REQUIRED = /ALERT_CERTIFICATE_REQUIRED$/;
const MAYBE_REQUIRED = /ALERT_HANDSHAKE_FAILURE$/;
const NO_VERSION = /ALERT_NO_APPLICATION_PROTOCOL$/;
const NOT_ACCEPTED =
  /ALERT_(?:BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(?:REVOKED|EXPIRED|UNKNOWN|REQUIRED)|UNKNOWN_CA|ACCESS_DENIED)$/;

/** What an upstream said about the client certificate, if the code of a lost connection tells it; else null. */
export function describeCertificateAlert(
  code: string,
  host: string,
  presented: { readonly reference: string } | null,
): string | null {
  if (presented !== null) {
    if (NO_VERSION.test(code)) {
      const other = `for HTTP/2: svc cert add ${host} --http2, for HTTP/1.1: svc cert add ${host} --no-http2`;
      return `${host} does not speak the HTTP version of this connection (${code}); outside the session, ${other}`;
    }
    const said = NOT_ACCEPTED.test(code) || MAYBE_REQUIRED.test(code);
    return said ? `${host} did not accept the client certificate ${presented.reference} (${code})` : null;
  }
  const fix = `add one outside the session: svc cert add ${host} --cert FILE --key FILE`;
  if (REQUIRED.test(code)) return `${host} requires a client certificate, and it has none here; ${fix}`;
  return MAYBE_REQUIRED.test(code)
    ? `${host} refused the TLS connection (${code}); if it requires a client certificate, ${fix}`
    : null;
}
