import type { Mutation } from '../mutation.ts';

const FIELDS = 'shared/wire/sources/fields.ts';
const GITHUB = 'shared/wire/sources/kinds/github_app.ts';
const AWS = 'shared/wire/sources/aws_fields.ts';
const NARROWING_TEST = 'shared/wire/sources/narrow_source.test.ts';
const SCOPES = 'sidecar/control/credential_scopes.ts';
const SCOPES_TEST = 'sidecar/control/credential_scopes.test.ts';
const SESSIONS_TEST = 'sidecar/local_api/scoped_session.test.ts';
const VALUE = 'worker/services/sources/narrowed_value.ts';
const VALUE_TEST = 'worker/narrowed_secrets.test.ts';
const row = 'Narrowed secrets';

/** Checks of sessions that use less of a minted secret (decision 0119). */
export const SCOPE_MUTATIONS: readonly Mutation[] = [
  {
    row,
    holds: 'a session gets no scope that the source does not name',
    file: FIELDS,
    text: 'const more = scopes.find((scope) => !own.includes(scope));',
    replacement: 'const more = scopes.find((scope) => scope === own.join());',
    tests: [NARROWING_TEST],
  },
  {
    row,
    holds: 'a source without scopes is not narrowed by one that may be more',
    file: FIELDS,
    text: 'if (own.length === 0) return',
    replacement: 'if (scopes.length === 0) return',
    tests: [NARROWING_TEST],
  },
  {
    row,
    holds: 'a session gets no repository that the source does not name',
    file: GITHUB,
    text: 'wanted.find((name) => own?.includes(name.toLowerCase()) === false);',
    replacement: "wanted.find((name) => own?.join(',') === name);",
    tests: [NARROWING_TEST],
  },
  {
    row,
    holds: 'a session gets no permission at a higher level than the source',
    file: GITHUB,
    text: 'LEVELS.indexOf(level) > LEVELS.indexOf(most)',
    replacement: 'LEVELS.indexOf(level) < 0',
    tests: [NARROWING_TEST],
  },
  {
    row,
    holds: 'a session policy is not added to those of the source',
    file: AWS,
    text: '(policy ?? arns) === undefined',
    replacement: "policy !== ''",
    tests: [NARROWING_TEST],
  },
  {
    row,
    holds: 'a session that narrows a secret is not given the wide value',
    file: SCOPES,
    text: 'narrowings.has(ref.path) ? cache.resolve(ref) : shared.resolve(ref, use)',
    replacement: 'shared.resolve(ref, use)',
    tests: [SCOPES_TEST],
  },
  {
    row,
    holds: 'a session that has ended or is not known is given nothing',
    file: SCOPES,
    text: 'if (session === null) return ENDED;',
    replacement: 'if (session === null) return shared;',
    tests: [SCOPES_TEST],
  },
  {
    row,
    holds: 'a narrowed value is dropped when its source is changed or deleted',
    file: SCOPES,
    text: 'for (const { cache } of this.#open.values()) cache.useVersions(versions);',
    replacement: '',
    tests: [SCOPES_TEST],
  },
  {
    row,
    holds: 'a value that does not say that it was narrowed is refused',
    file: 'sidecar/control/channel.ts',
    text: 'isNarrowed(refs, ref) && credential.narrowed !== true',
    replacement: 'isNarrowed(refs, ref) && credential.version === ref.path',
    tests: ['sidecar/control/channel.test.ts'],
  },
  {
    row,
    holds: 'a session whose secret cannot be narrowed does not start',
    file: 'sidecar/local_api/mint_scopes.ts',
    text: "if (refused?.ok === false) return err(localError('invalid_input', `scopes: ${refused.error.message}`));",
    replacement: '',
    tests: [SESSIONS_TEST],
  },
  {
    row,
    holds: 'no program of a session is given the plaintext of a secret that the session narrows',
    file: 'sidecar/local_api/launch_routes.ts',
    text: 'if (isScoped(session.scopes, reference)) {',
    replacement: "if (reference === '') {",
    tests: [SESSIONS_TEST],
  },
  {
    row,
    holds: 'a token for more scopes than a session asked for is discarded',
    file: VALUE,
    text: 'if (isForMore(minted.value, narrowing)) {',
    replacement: 'if (isForMore(minted.value, {})) {',
    tests: [VALUE_TEST],
  },
  {
    row,
    holds: 'a value is minted for the narrowed source',
    file: VALUE,
    text: 'mint(context, read, source.value)',
    replacement: 'mint(context, read)',
    tests: [VALUE_TEST],
  },
];
