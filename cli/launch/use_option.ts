/** The description of `--use`, for every command that has it. */
export const USE_OPTION = '--use <secret>';
export const USE_TEXT = 'where a host is bound to several secrets, use this one, such as user/github-work (repeatable)';
