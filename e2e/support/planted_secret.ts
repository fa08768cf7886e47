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

/** The files under a folder that contain the secret in any form, and the number of files read. */
export function searchFiles(folder: string, secret: string): { searched: number; holding: string[] } {
  const holding: string[] = [];
  let searched = 0;
  for (const entry of entriesUnder(folder)) {
    if (foundIn(entry.name, secret).length > 0) holding.push(join(entry.parentPath, entry.name));
    const file = contentOf(entry);
    if (file === null) continue;
    searched += 1;
    if (foundIn(file.bytes, secret).length > 0) holding.push(file.path);
  }
  return { searched, holding };
}

/** The processes of this machine whose arguments or environment contain the secret. */
export function searchProcesses(secret: string): { searched: number; holding: string[] } {
  const holding: string[] = [];
  let searched = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const part of ['cmdline', 'environ']) {
      const bytes = readIfAllowed(`/proc/${pid}/${part}`);
      if (bytes === null) continue;
      searched += 1;
      if (foundIn(bytes, secret).length > 0) holding.push(`/proc/${pid}/${part}`);
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
