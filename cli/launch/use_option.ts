/** The description of `--scope`, for every command that has it. */
export const SCOPE_OPTION = '--scope <reference:field=value>';
export const SCOPE_TEXT =
  'use less of a minted secret in this session, such as ci/github:repositories=website (repeatable)';
/** The description of `--use`, for every command that has it. */
export const USE_OPTION = '--use <secret>';
export const USE_TEXT = 'where a host is bound to several secrets, use this one, such as user/github-work (repeatable)';
