/** The error keywords of RFC 7644 section 3.12 that this server uses. */
export type ScimType =
  | 'invalidFilter'
  | 'invalidPath'
  | 'invalidSyntax'
  | 'invalidValue'
  | 'mutability'
  | 'noTarget'
  | 'tooMany'
  | 'uniqueness';

/** Why a request of a directory cannot be read. */
export interface ScimProblem {
  readonly scimType: ScimType;
  readonly detail: string;
}

export function scimProblem(scimType: ScimType, detail: string): ScimProblem {
  return { scimType, detail };
}
