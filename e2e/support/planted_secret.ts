import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { contentOf, entriesUnder } from './files_under.ts';

/** A unique secret, with characters that JSON, URLs and base64 encode differently. */
export function plantSecret(): string {
  return `sk_${randomBytes(15).toString('base64url')}/+"&~${randomBytes(9).toString('base64url')}`;
}

/** Each form in which a secret could appear: unchanged, escaped, and encoded at any alignment. */
export function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const forms = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
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
  return [...new Set(forms)];
}

/** The forms of the secret that the bytes contain. */
export function foundIn(bytes: Buffer | string, secret: string): string[] {
  const haystack = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes);
  return formsOf(secret).filter((form) => haystack.includes(form));
}

/** The bytes to look for; each thing is read once for all secrets, because there may be many of either. */
function needlesOf(secrets: string | readonly string[]): readonly Buffer[] {
  const forms = new Set([secrets].flat().flatMap((secret) => formsOf(secret)));
  return [...forms].map((form) => Buffer.from(form));
}

const holdsAny = (haystack: Buffer, needles: readonly Buffer[]): boolean =>
  needles.some((needle) => haystack.includes(needle));

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
