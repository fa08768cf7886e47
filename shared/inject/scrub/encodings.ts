import { byteTextOf, percentEncode, wellFormed } from '../byte_text.ts';

/**
 * Every spelling of a secret that a reply is searched for, as byte text (one latin1 character per byte), without
 * duplicates: as it is, base64 at any alignment in both alphabets, percent-encoded, JSON- and HTML-escaped, hex.
 */
export function encodingsOf(secret: string): string[] {
  const text = wellFormed(secret);
  const bytes = byteTextOf(text);
  const base64 = [0, 1, 2].map((offset) => base64Within(bytes, offset));
  const spellings = [
    bytes,
    ...hexForms(bytes, ''),
    ...hexForms(bytes, '%'),
    ...everyUnitEscaped(text),
    ...escapedForms(text),
    ...base64.flatMap((encoded) => [...escapedForms(encoded), base64UrlOf(encoded)]),
  ];
  return [...new Set(spellings)];
}

/**
 * The base64 characters that are fixed wherever `bytes` starts `offset` bytes into a group of three: those that also hold
 * bits of a neighbour are left out.
 */
function base64Within(bytes: string, offset: number): string {
  const encoded = btoa('\0'.repeat(offset) + bytes);
  const first = Math.ceil((offset * 8) / 6);
  const end = Math.floor(((offset + bytes.length) * 8) / 6);
  return encoded.slice(first, end);
}

function base64UrlOf(encoded: string): string {
  return encoded.replaceAll('+', '-').replaceAll('/', '_');
}

function hexForms(bytes: string, before: string): string[] {
  let lower = '';
  for (const byte of bytes) lower += before + byte.charCodeAt(0).toString(16).padStart(2, '0');
  return [lower, lower.toUpperCase()];
}

/** `\u` escapes for every UTF-16 unit, as some JSON writers do. */
function everyUnitEscaped(text: string): string[] {
  return inBothHexCases((hex) => escapeUnits(text, /[^]/g, hex));
}

/** The forms that leave plain characters alone: JSON writers, URL writers and HTML writers differ in which ones those are. */
function escapedForms(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1);
  const slashed = json.replaceAll('/', String.raw`\/`);
  // For writers that spell quotation marks as \u0022.
  const bareQuotes = json.replaceAll(String.raw`\"`, '"');
  return [
    byteTextOf(text),
    byteTextOf(json),
    byteTextOf(slashed),
    ...inBothHexCases((hex) => escapeUnits(json, NOT_ASCII, hex)),
    ...inBothHexCases((hex) => escapeUnits(slashed, NOT_ASCII, hex)),
    ...inBothHexCases((hex) => escapeUnits(json, NOT_ASCII_OR_MARKUP, hex)),
    ...inBothHexCases((hex) => escapeUnits(bareQuotes, NOT_ASCII_OR_PUNCTUATION, hex)),
    ...percentForms(text),
    ...htmlForms(text),
  ];
}

const NOT_ASCII = /[^ -~]/g;
const NOT_ASCII_OR_MARKUP = /[^ -~]|[<>&]/g;
const NOT_ASCII_OR_PUNCTUATION = /[^ -~]|[<>&'"+`]/g;

type HexOfUnit = (unit: string) => string;

function inBothHexCases(form: (hex: HexOfUnit) => string): string[] {
  return [form(hexOfUnit), form((unit) => hexOfUnit(unit).toUpperCase())];
}

function hexOfUnit(unit: string): string {
  return unit.charCodeAt(0).toString(16).padStart(4, '0');
}

function escapeUnits(text: string, units: RegExp, hex: HexOfUnit): string {
  return text.replaceAll(units, (unit) => String.raw`\u` + hex(unit));
}

function percentForms(text: string): string[] {
  const component = encodeURIComponent(text);
  const forms = [
    component,
    percentEncode(text),
    encodeURI(text),
    component.replaceAll('%20', '+'),
    percentEncode(text).replaceAll('%20', '+'),
    formOf(text),
  ];
  return forms.flatMap((form) => [form, form.replaceAll(/%../g, (escape) => escape.toLowerCase())]);
}

/** As forms are sent: what `URLSearchParams` writes. */
function formOf(text: string): string {
  return percentEncode(text).replaceAll('%20', '+').replaceAll('%2A', '*').replaceAll('~', '%7E');
}

const HTML_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
]);

function htmlForms(text: string): string[] {
  const escaped = text.replaceAll(/[&<>"]/g, (character) => HTML_ESCAPES.get(character) ?? character);
  const forms = [escaped, escaped.replaceAll("'", '&#39;'), escaped.replaceAll("'", '&#x27;')];
  return forms.flatMap((form) => [form, form.replaceAll('&quot;', '&#34;')]).map(byteTextOf);
}
