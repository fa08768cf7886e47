/**
 * Header lines and targets are latin1 text: one character per byte. Stored credentials and parameters are Unicode text that
 * is sent as UTF-8. The functions of this file convert between the two.
 */

const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true });
const NOT_ASCII = /[^\p{ASCII}]/u;

/** The UTF-8 bytes of `text`, each as one latin1 character. */
export function byteTextOf(text: string): string {
  return NOT_ASCII.test(text) ? latin1Text(new TextEncoder().encode(text)) : text;
}

/** The text whose UTF-8 bytes are the latin1 characters of `bytes`; bytes that are not UTF-8 become U+FFFD. */
export function textOfBytes(bytes: string): string {
  return NOT_ASCII.test(bytes) ? UTF8.decode(latin1Bytes(bytes)) : bytes;
}

/** Each character of `text` as a byte; `text` is latin1. */
export function latin1Bytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  return bytes;
}

/** Each byte as a latin1 character. */
export function latin1Text(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

/** Percent-decoded bytes as latin1 text; an incomplete escape stays unchanged. */
export function percentDecode(text: string): string {
  if (!text.includes('%')) return text;
  return text.replaceAll(/%([0-9a-fA-F]{2})/g, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** `text` as UTF-8, everything but RFC 3986's unreserved characters percent-encoded. A lone surrogate becomes U+FFFD. */
export function percentEncode(text: string): string {
  return encodeURIComponent(toWellFormed(text)).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** `text` with U+FFFD for each lone surrogate, which is what UTF-8 makes of it. */
export function toWellFormed(text: string): string {
  return textOfBytes(byteTextOf(text));
}

/** Standard base64 of the UTF-8 bytes of `text`. */
export function base64Of(text: string): string {
  return btoa(byteTextOf(text));
}
