/** A parsed image name. */
export interface OciReference {
  /** `registry/path` without tag and digest. */
  readonly repository: string;
  readonly tag: string | null;
  /** `sha256:<64 digits>` */
  readonly digest: string | null;
}

const PART = /^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$/;
const REGISTRY = /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*(?::\d{1,5})?$/i;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const MAX_REPOSITORY = 255;

/**
 * Parses `[registry/]path[:tag][@sha256:digest]` by Docker's reference grammar; null for anything else, also for an option,
 * because a name begins with a letter or digit.
 */
export function readOciReference(text: string): OciReference | null {
  const [named = '', digest, ...more] = text.split('@');
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest))) return null;
  const colon = named.lastIndexOf(':');
  const hasTag = colon > named.lastIndexOf('/');
  const repository = hasTag ? named.slice(0, colon) : named;
  const tag = hasTag ? named.slice(colon + 1) : null;
  if (!isRepository(repository) || (tag !== null && !TAG.test(tag))) return null;
  return { repository, tag, digest: digest ?? null };
}

/** True for a valid tag. */
export function isOciTag(text: string): boolean {
  return TAG.test(text);
}

/** `repository[:tag][@digest]`. */
export function formatOciReference(reference: OciReference): string {
  const tag = reference.tag === null ? '' : `:${reference.tag}`;
  const digest = reference.digest === null ? '' : `@${reference.digest}`;
  return reference.repository + tag + digest;
}

/** True if it will mean the same image tomorrow: by digest or, as far as tags allow, by a release tag. */
export function isPinnedOci(reference: OciReference): boolean {
  if (reference.digest !== null) return true;
  return (
    reference.tag !== null &&
    /\d/.test(reference.tag) &&
    !/^(?:latest|stable|edge|main|master|nightly|dev)\b/i.test(reference.tag)
  );
}

function isRepository(text: string): boolean {
  if (text === '' || text.length > MAX_REPOSITORY) return false;
  const [first = '', ...rest] = text.split('/');
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  if (hasRegistry) return REGISTRY.test(first) && rest.every((part) => PART.test(part));
  return [first, ...rest].every((part) => PART.test(part));
}
