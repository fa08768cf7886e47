import { isUndecidablePath } from './target.ts';

/** One way in which a server may read a path before routing. */
interface PathReading {
  /** Without empty segments; each in the form of {@link segmentKey}. */
  readonly segments: readonly string[];
  /** True if the path was cut at a `?` or `#` from an escape, or before a segment that is a suffix. */
  readonly isCut: boolean;
}

/** Servers and the proxies before them decode a path once or twice; deeper encoding is an attempt to confuse them. */
const MAX_DECODINGS = 4;
const MAX_SEGMENTS = 64;
/** Without dot segments such a path is longer than that of any operation, in any reading. */
const MANY_SEGMENTS = /^(?:[^/\\]*[/\\]){65}/;
const DOT_SEGMENT = /[/\\](?:\.|%2e){1,2}(?:$|[/\\;])/i;
/**
 * Characters that servers treat differently: control characters (cut, skipped, or end of line in a regular expression),
 * escapes that only some know (`%u0041`), and invalid UTF-8, which old decoders read as ASCII.
 */
const UNDECIDABLE = /[^ -~\x80-\xff]|%u[0-9a-f]{4}|[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f]|\xf0[\x80-\x8f]/i;
/** Some servers accept a format as its own segment. */
const SUFFIX_ALONE = /^\.[^.]/;
const DOTS = /^\.{1,2}$/;
/** Extensions of front controllers; the path after one is the one that is routed (RFC 3875 section 4.1.5). */
const FRONT_CONTROLLER = /\.(?:php\d?|f?cgi|pl|aspx?|dll)$/;

/**
 * Every way in which a server may read a path, each more lenient than any single server: decoded up to {@link MAX_DECODINGS}
 * times, letters folded, with and without `;` parameters, with dot segments applied or kept as values. Null if the readings
 * cannot be listed.
 */
export function pathReadings(path: string): readonly PathReading[] | null {
  const texts = listDecodings(path);
  if (texts === null || texts.some((text, round) => isUndecidable(text, round))) return null;
  const readings: PathReading[] = [];
  for (const [round, text] of texts.entries()) {
    if (countDelimiters(text) !== countDelimiters(texts[round + 1])) addReadings(readings, text, false);
    const cut = round > 0 ? text.search(/[?#]/) : -1;
    if (cut >= 0) addReadings(readings, text.slice(0, cut), true);
  }
  return readings;
}

/** The path, and its form after each decoding. Null if it is encoded more deeply than any server decodes. */
function listDecodings(path: string): readonly string[] | null {
  const texts = [path];
  for (let text = decodeOnce(path); text !== texts.at(-1); text = decodeOnce(text)) {
    if (texts.length > MAX_DECODINGS) return null;
    texts.push(text);
  }
  return texts;
}

/** The number of delimiters: without new ones a decoding changes no reading, because the keys of segments are decoded anyway. */
function countDelimiters(text = ''): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) if (DELIMITERS.has(text.charCodeAt(at))) count += 1;
  return count;
}

/** {@link isUndecidablePath} checks the path as sent for every request anyway. */
function isUndecidable(text: string, round: number): boolean {
  if (UNDECIDABLE.test(text) || (MANY_SEGMENTS.test(text) && DOT_SEGMENT.test(text))) return true;
  return round > 0 && isUndecidablePath(text.replaceAll('\\', '/').replaceAll('#', ''));
}

/** A segment as the most lenient server compares it: decoded, without case, accents, and anything after its last letter or digit. */
export function segmentKey(segment: string): string {
  let text = segment;
  for (let next = decodeOnce(text); next !== text; next = decodeOnce(text)) text = next;
  return withoutTrail(PLAIN_SEGMENT.test(text) ? text : foldText(text));
}

/** The parts of a last segment that servers with format suffixes compare (`refunds` of `refunds.json`), up to the n-th dot. */
export function withoutSuffixes(key: string, maxDots: number): readonly string[] {
  const found: string[] = [];
  for (let dot = key.indexOf('.', 1); dot > 0 && found.length < maxDots; dot = key.indexOf('.', dot + 1)) {
    found.push(withoutTrail(key.slice(0, dot)));
  }
  return found;
}

const DELIMITERS: ReadonlySet<number> = new Set(['/', '\\', ';'].map((character) => character.charCodeAt(0)));
const PLAIN_SEGMENT = /^[a-z0-9_.-]*$/;

/** Compared without case, accents and width, like file systems, databases and case-insensitive patterns do. */
function foldText(text: string): string {
  const ascii = text.toLowerCase();
  if (!/[^\0-\x7f]/.test(ascii)) return ascii;
  return fromUtf8(text).normalize('NFKD').replaceAll(/\p{M}/gu, '').toUpperCase().toLowerCase();
}

/** A byte text decoded as UTF-8; unchanged if it is not UTF-8. */
function fromUtf8(bytes: string): string {
  try {
    const escaped = bytes.replaceAll(/[%\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
    return decodeURIComponent(escaped);
  } catch {
    return bytes;
  }
}

/** A segment without letters and digits (`-`, `..`) is kept whole. */
function withoutTrail(text: string): string {
  let end = text.length;
  while (end > 0 && !/[\p{L}\p{N}]/u.test(text.charAt(end - 1))) end -= 1;
  return end === 0 ? text : text.slice(0, end);
}

function decodeOnce(text: string): string {
  if (!text.includes('%')) return text;
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_escape, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

function addReadings(readings: PathReading[], path: string, isCut: boolean): void {
  const forms = path.includes('\\') ? [path, path.replaceAll('\\', '/')] : [path];
  for (const form of forms) {
    const segments = form.split('/').filter((segment) => segment !== '');
    if (segments.some((segment) => segment.includes(';'))) {
      add(
        readings,
        segments.map((segment) => segment.replace(/;[^]*$/, '')).filter((segment) => segment !== ''),
        isCut,
      );
    }
    add(readings, segments, isCut);
  }
}

/** Dot segments may appear only after decoding, so the keys are checked; a blank is not a segment. */
function add(readings: PathReading[], path: readonly string[], isCut: boolean): void {
  if (path.length > MAX_SEGMENTS) return;
  const segments = path.map((segment) => segmentKey(segment)).filter((segment) => segment.trim() !== '');
  const forms = segments.some((segment) => DOTS.test(segment)) ? [segments, resolveDots(segments)] : [segments];
  for (const form of forms) {
    readings.push({ segments: form, isCut });
    for (const [at, segment] of form.entries()) {
      if (FRONT_CONTROLLER.test(segment)) readings.push({ segments: form.slice(at + 1), isCut });
    }
    if (SUFFIX_ALONE.test(form.at(-1) ?? '')) readings.push({ segments: form.slice(0, -1), isCut: true });
  }
}

function resolveDots(segments: readonly string[]): readonly string[] {
  const kept: string[] = [];
  for (const segment of segments) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  return kept;
}
