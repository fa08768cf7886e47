import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { contentOf, entriesUnder } from './files_under.ts';

/** A unique secret, with characters that JSON, URLs and base64 encode differently. */
export function plantSecret(): string {
  return `sk_${randomBytes(15).toString('base64url')}/+"&~${randomBytes(9).toString('base64url')}`;
}

/** Each form in which a secret could appear: unchanged, escaped, and encoded at any alignment, also as part of JSON. */
export function formsOf(secret: string): string[] {
  const inJson = JSON.stringify(secret).slice(1, -1);
  const forms = [secret, inJson, encodeURIComponent(secret), inMarkup(secret)];
  for (const bytes of [Buffer.from(secret), Buffer.from(inJson)]) {
    forms.push(bytes.toString('hex'), bytes.toString('hex').toUpperCase());
    for (const encoding of ['base64', 'base64url'] as const) {
      for (const lead of [0, 1, 2]) {
        // The outer characters of an encoding depend on its neighbours, so only the inner ones are searched for.
        const encoded = Buffer.concat([Buffer.alloc(lead), bytes])
          .toString(encoding)
          .replace(/=+$/, '');
        forms.push(encoded.slice(lead === 0 ? 0 : lead + 1, -1));
      }
    }
  }
  return [...new Set(forms)];
}

/** As the text of a page has it. */
function inMarkup(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}

/** The forms of the secret that the bytes contain. */
export function foundIn(bytes: Buffer | string, secret: string): string[] {
  const haystack = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes);
  return formsOf(secret).filter((form) => haystack.includes(form));
}

/** The bytes to look for; each thing is read once for all secrets, because there may be many of either. */
export function needlesOf(secrets: string | readonly string[]): readonly Buffer[] {
  const forms = new Set([secrets].flat().flatMap((secret) => formsOf(secret)));
  return [...forms].map((form) => Buffer.from(form));
}

export function holdsAny(haystack: Buffer, needles: readonly Buffer[]): boolean {
  return needles.some((needle) => haystack.includes(needle));
}

interface Search {
  readonly searched: number;
  readonly holding: string[];
}

/** The files under a folder that contain a secret in any form, and the number of files read. */
export function searchFiles(folder: string, secrets: string | readonly string[]): Search {
  const needles = needlesOf(secrets);
  const holding: string[] = [];
  let searched = 0;
  for (const entry of entriesUnder(folder)) {
    if (holdsAny(Buffer.from(entry.name), needles)) holding.push(join(entry.parentPath, entry.name));
    const file = contentOf(entry);
    if (file === null) continue;
    searched += 1;
    if (holdsAny(file.bytes, needles)) holding.push(file.path);
  }
  return { searched, holding };
}

/** The processes of this machine whose arguments or environment contain a secret. */
export function searchProcesses(secrets: string | readonly string[]): Search {
  const needles = needlesOf(secrets);
  const holding: string[] = [];
  let searched = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const part of ['cmdline', 'environ']) {
      const bytes = readIfAllowed(`/proc/${pid}/${part}`);
      if (bytes === null) continue;
      searched += 1;
      if (holdsAny(bytes, needles)) holding.push(`/proc/${pid}/${part}`);
    }
  }
  return { searched, holding };
}

/** Null for a process that has ended, and for one of another user. */
function readIfAllowed(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}
