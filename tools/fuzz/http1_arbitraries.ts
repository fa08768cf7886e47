/** Generators of HTTP/1.1 messages for the property tests and the fuzz runner: legal ones, and legal ones damaged. */
import * as fc from 'fast-check';

const TOKEN = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const latin1 = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, at) => String.fromCharCode(from + at)).join('');
const VISIBLE = latin1(0x21, 0x7e) + latin1(0x80, 0xff);

function textOf(alphabet: string, minLength: number, maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...alphabet.split('')), minLength, maxLength });
}

/** Names that frame the message, which both parsers act on; the framing part of a message is generated separately. */
const ACTED_ON = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'proxy-connection',
  'upgrade',
  'expect',
]);

const fieldName = fc
  .oneof(fc.constantFrom('Host', 'ACCEPT', 'x-Api-Key', 'coOkie', 'set-cookie', 'X_a.b'), textOf(TOKEN, 1, 12))
  .filter((name) => !ACTED_ON.has(name.toLowerCase()));
const whitespace = textOf(' \t', 0, 3);
const innerText = textOf(`${VISIBLE} \t`, 0, 30);

/** A legal header line without its CRLF. */
const fieldLine: fc.Arbitrary<string> = fc
  .tuple(fieldName, whitespace, innerText, whitespace)
  .map(([name, before, value, after]) => `${name}:${before}${value}${after}`);

const method: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS') },
  { weight: 1, arbitrary: textOf(TOKEN, 1, 10).filter((name) => name !== 'CONNECT' && name !== 'HEAD') },
);

const target: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: textOf(latin1(0x21, 0x7e), 0, 30).map((rest) => `/${rest}`) },
  { weight: 1, arbitrary: textOf(VISIBLE, 1, 30) },
);

const octets = textOf(latin1(0, 0xff), 0, 40);
const extension = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('', '', ';a', ';a=b', ';a="b c"') },
  { weight: 1, arbitrary: textOf(`${VISIBLE} \t`, 0, 12).map((text) => `;${text}`) },
);

const chunkText = fc
  .tuple(textOf(latin1(0, 0xff), 1, 40), extension, fc.constantFrom('', '0', '000'), fc.boolean())
  .map(([data, ext, zeros, isUpper]) => {
    const digits = data.length.toString(16);
    return `${zeros}${isUpper ? digits.toUpperCase() : digits}${ext}\r\n${data}\r\n`;
  });

const trailerText = fc.array(fieldLine, { maxLength: 3 }).map((lines) => lines.map((line) => `${line}\r\n`).join(''));

/** A legal chunked body with extensions and trailers. */
export const chunkedBody: fc.Arbitrary<string> = fc
  .tuple(fc.array(chunkText, { maxLength: 5 }), extension, trailerText)
  .map(([chunks, ext, trailers]) => `${chunks.join('')}0${ext}\r\n${trailers}\r\n`);

/** The header lines that frame a body, and the body. */
const framed: fc.Arbitrary<readonly [string[], string]> = fc.oneof(
  fc.constant<readonly [string[], string]>([[], '']),
  octets.map((body): readonly [string[], string] => [[`Content-Length: ${body.length}`], body]),
  fc
    .tuple(chunkedBody, fc.constantFrom('Transfer-Encoding: chunked', 'transfer-encoding:CHUNKED  '))
    .map(([body, line]): readonly [string[], string] => [[line], body]),
);

const lines = fc
  .tuple(fc.array(fieldLine, { maxLength: 6 }), framed, fc.nat())
  .map(([fields, [framing, body], place]) => {
    const at = place % (fields.length + 1);
    return { fields: [...fields.slice(0, at), ...framing, ...fields.slice(at)], body };
  });

/** A legal request, as latin1 text. */
export const request: fc.Arbitrary<string> = fc
  .tuple(method, target, lines)
  .map(([verb, uri, { fields, body }]) => `${[`${verb} ${uri} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n${body}`);

/** A legal head of a request, and one of a reply, as latin1 text. */
export const requestHeadText: fc.Arbitrary<string> = fc
  .tuple(method, target, fc.constantFrom('1.0', '1.1'), fc.array(fieldLine, { maxLength: 12 }))
  .map(([verb, uri, version, fields]) => `${[`${verb} ${uri} HTTP/${version}`, ...fields].join('\r\n')}\r\n\r\n`);

const statusLine = fc
  .tuple(fc.constantFrom('1.0', '1.1'), fc.integer({ min: 100, max: 999 }), fc.option(innerText))
  .map(([version, status, reason]) => `HTTP/${version} ${status}${reason === null ? '' : ` ${reason}`}`);

export const replyHeadText: fc.Arbitrary<string> = fc
  .tuple(statusLine, fc.array(fieldLine, { maxLength: 12 }))
  .map(([start, fields]) => `${[start, ...fields].join('\r\n')}\r\n\r\n`);

/** A legal final reply with its body, as latin1 text; without a framing header the body ends with the connection. */
export const reply: fc.Arbitrary<string> = fc
  .tuple(fc.integer({ min: 200, max: 599 }), innerText, lines, octets)
  .map(([status, reason, { fields, body }, rest]) => {
    const hasBody = status !== 204 && status !== 304;
    const tail = fields.some((line) => /^(?:content-length|transfer-encoding):/i.test(line)) ? body : rest;
    return `${[`HTTP/1.1 ${status} ${reason}`, ...fields].join('\r\n')}\r\n\r\n${hasBody ? tail : ''}`;
  });

const NASTY = [
  '\r', '\n', '\r\n', '\0', '\x0b', '\x7f', '\t', ' ', ':', ';', ',', '0', '5', '-', '+', '0x', '\xa0', '\xff',
  '\r\n\r\n', '\n\n', 'Content-Length: 5\r\n', 'Content-Length: 05\r\n', 'Content-Length: 5, 5\r\n',
  'Transfer-Encoding: chunked\r\n', 'Transfer-Encoding : chunked\r\n', 'Transfer-Encoding: identity\r\n',
  'Transfer-Encoding:\tchunked\r\n', ' folded\r\n', 'chunked, ', 'gzip, ', '0\r\n\r\n', 'ffffffffffffffff',
  'Connection: close\r\n', 'GET /smuggled HTTP/1.1\r\n\r\n', 'HTTP/1.0', '1;', '"',
]; // prettier-ignore

interface Damage {
  readonly place: number;
  readonly removed: number;
  readonly inserted: string;
  readonly atLine: boolean;
}

const damages: fc.Arbitrary<Damage> = fc.record({
  place: fc.nat(),
  removed: fc.constantFrom(0, 0, 1, 2),
  inserted: fc.constantFrom('', ...NASTY),
  atLine: fc.boolean(),
});

function damage(text: string, { place, removed, inserted, atLine }: Damage): string {
  const starts = [...text.matchAll(/\r\n/g)].map((match) => match.index + 2);
  const at = atLine && starts.length > 0 ? (starts[place % starts.length] ?? 0) : place % (text.length + 1);
  return text.slice(0, at) + inserted + text.slice(at + removed);
}

/** Text of the given kind, damaged in up to four places with typical parts of smuggling attacks. */
export function damagedText(whole: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(whole, fc.array(damages, { minLength: 1, maxLength: 4 }))
    .map(([text, chosen]) => chosen.reduce(damage, text));
}
