/**
 * What a credential of a well-known service looks like, so that one can be recognised without being used. Only formats with
 * a prefix of their own are listed: any other rule would also match ordinary values.
 */
const SHAPES: readonly (readonly [service: string, pattern: RegExp])[] = [
  ['github', /gh[opusr]_[A-Za-z0-9]{36,255}/],
  ['github', /github_pat_[A-Za-z0-9_]{36,255}/],
  ['gitlab', /gl(?:pat|ptt|dt|oas|cbt|rt)-[A-Za-z0-9_.-]{20,255}/],
  ['npm', /npm_[A-Za-z0-9]{36}/],
  ['pypi', /pypi-[A-Za-z0-9_-]{50,1000}/],
  ['docker', /dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,255}/],
  ['anthropic', /sk-ant-[A-Za-z0-9]{2,10}-[A-Za-z0-9_-]{40,255}/],
  ['openai', /sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,255}/],
  ['openai', /sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}/],
  ['gemini', /AIza[A-Za-z0-9_-]{35}/],
  ['linear', /lin_(?:api|oauth)_[A-Za-z0-9]{40,64}/],
  ['notion', /(?:ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43})/],
  ['sentry', /sntr(?:ys|yu)_[A-Za-z0-9_=/+-]{40,512}/],
  ['slack', /xox[abpers]-[A-Za-z0-9-]{20,255}/],
  ['stripe', /[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}/],
  ['jira', /ATATT3[A-Za-z0-9_=-]{100,400}/],
  ['openrouter', /sk-or-v1-[0-9a-f]{64}/],
  ['huggingface', /hf_[A-Za-z0-9]{34,60}/],
  ['digitalocean', /do[opr]_v1_[0-9a-f]{64}/],
  ['sendgrid', /SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}/],
];

/** Every service whose credentials can be recognised by their shape. */
export const SHAPED_SERVICES: readonly string[] = [...new Set(SHAPES.map(([service]) => service))];

const WHOLE = SHAPES.map(([service, pattern]) => ({ service, pattern: new RegExp(`^(?:${pattern.source})$`) }));

/** Placeholders that the binding templates hand out: they look like credentials on purpose. */
const STAND_IN = /svc-stand-in-not-a-key|^svc-placeholder-refresh-/;

/** Whether the text is a placeholder of a binding template, which is no secret. */
export function isStandIn(text: string): boolean {
  return STAND_IN.test(text);
}

/** The service whose credentials have the shape of this text; null if it has no known shape, or is a placeholder. */
export function serviceOfShape(text: string): string | null {
  if (text.length > 1_024 || isStandIn(text)) return null;
  return WHOLE.find(({ pattern }) => pattern.test(text))?.service ?? null;
}

const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY-----/;
const SEPARATORS = /[\s"'`:;,@/?&=|<>()[\]{}]+/;
/** A value with more parts is no setting that a person typed. */
const MAX_PARTS = 200;

/**
 * What a value contains that has the shape of a credential: the name of its service, or `private key`. Also finds one inside
 * a URL or a header. Null if there is none.
 */
export function credentialWithin(value: string): string | null {
  if (PRIVATE_KEY.test(value)) return 'private key';
  const whole = serviceOfShape(value);
  if (whole !== null) return whole;
  for (const part of value.split(SEPARATORS, MAX_PARTS)) {
    const service = serviceOfShape(part);
    if (service !== null) return service;
  }
  return null;
}

/** No name of a service or an agent is longer. */
const LONGEST_NAME = 32;

/** Whether a word that was given as a name could be a credential, which no message may repeat. */
export function mayBeCredential(word: string): boolean {
  return word.length > LONGEST_NAME || credentialWithin(word) !== null;
}
