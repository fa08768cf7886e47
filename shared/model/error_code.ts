/** The `code` of an error of the system or of ours, such as ENOENT; empty for anything else. */
export function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}

/** Why the system refused something with a file, by the code of its error. */
export const SYSTEM_REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'your disk quota is used up',
  EROFS: 'the file system is read-only',
  EACCES: 'this user may not',
  EPERM: 'the system does not permit it',
};
