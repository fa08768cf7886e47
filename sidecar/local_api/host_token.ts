import { randomBytes } from 'node:crypto';
import { err, ok, type Result } from '../../shared/model/result.ts';
import {
  corruptStateFile,
  readPrivateFile,
  writePrivateFile,
  type StateFileProblemReason,
} from '../../machine/state_file.ts';
import type { Problem } from '../../shared/model/problem.ts';

const HOST_TOKEN = /^svc_host_[A-Za-z0-9_-]{43}$/;

/** The host token of the local API, read from its file. The file is created (0600) if it does not exist. */
export async function openHostToken(path: string): Promise<Result<string, Problem<StateFileProblemReason>>> {
  const text = readPrivateFile(path);
  if (!text.ok) return text;
  if (text.value === null) return ok(await makeToken(path));
  const token = text.value.trim();
  if (HOST_TOKEN.test(token)) return ok(token);
  return err(
    corruptStateFile(path, 'it does not contain a host token', 'Delete it and start again; a new one is created.'),
  );
}

async function makeToken(path: string): Promise<string> {
  const token = `svc_host_${randomBytes(32).toString('base64url')}`;
  await writePrivateFile(path, `${token}\n`);
  return token;
}
