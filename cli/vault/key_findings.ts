import { statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import type { Finding } from '../up/finding.ts';
import { modeText } from '../up/home.ts';
import { readProtectedKeyFile } from './protected_key_file.ts';
import type { CliContext } from '../context.ts';

const CHECK = 'master key';
const wrapped = z.object({ protection: z.literal('kms'), key: z.string() });

/** What a person can see of a master key that a KMS wraps. The KMS is not asked: a start of svc does that. */
export function keyFindings(home: string, env: CliContext['env']): readonly Finding[] {
  if (env['SVC_VAULT_KEY'] !== undefined) return [];
  const { data } = wrapped.safeParse(parseJson(readProtectedKeyFile(join(home, 'vault.key')) ?? ''));
  if (data === undefined) return [];
  const found: Finding = { check: CHECK, level: 'ok', text: `vault.key is wrapped by ${data.key}` };
  return [found, ...credentialFindings(env['SVC_KMS_CREDENTIALS_FILE'])];
}

function credentialFindings(file: string | undefined): readonly Finding[] {
  const check = CHECK;
  if (file === undefined) {
    const text = 'SVC_KMS_CREDENTIALS_FILE is not set here';
    const fix = 'set it where svc is started: without it, svc does not start';
    return [{ check, level: 'warning', text, fix }];
  }
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats?.isFile() !== true) {
    const text = `SVC_KMS_CREDENTIALS_FILE names ${file}, which is not a file`;
    return [{ check, level: 'problem', text, fix: 'name the file with the credentials of the KMS' }];
  }
  if ((stats.mode & 0o077) === 0) return [];
  const text = `${file} can be read by other users (mode ${modeText(stats)})`;
  return [
    { check, level: 'problem', text, fix: `chmod 600 ${file}; if someone may have read it, replace what is in it` },
  ];
}
