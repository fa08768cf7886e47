import type { Mutation } from '../mutation.ts';

const SOURCES = 'worker/secret_sources.test.ts';
const AWS = 'worker/aws_sources.test.ts';
const MINTED = 'worker/services/sources/minted_value.ts';
const STORED = 'worker/services/sources/secret_sources.ts';

/** Checks of secrets that a provider mints. */
export const SOURCE_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Minted secrets',
    holds: 'a value is not released at its end',
    file: MINTED,
    text: 'if (!isUsable(context.clock.now(), { storedAt, expiresAt })) return null;',
    replacement: '',
    tests: [SOURCES],
  },
  {
    row: 'Minted secrets',
    holds: 'a value that was minted for a source which changed meanwhile is discarded',
    file: MINTED,
    text: 'if (!isSame) return ok({ statements: [], events: [], value: false });',
    replacement: 'if (now === null) return ok({ statements: [], events: [], value: false });',
    tests: [SOURCES],
  },
  {
    row: 'Minted secrets',
    holds: 'a value that has ended when it arrives is refused',
    file: MINTED,
    text: 'if (expiresAtMs < context.clock.now() + SHORTEST_MS) {',
    replacement: 'if (expiresAtMs < 0) {',
    tests: [SOURCES],
  },
  {
    row: 'Minted secrets',
    holds: 'a token for more than was asked is discarded',
    file: 'worker/services/sources/kinds/github_app.ts',
    text: 'if (!isNarrowed(source, data)) return',
    replacement: "if (!isNarrowed(source, data) && source.app_id === '') return",
    tests: [SOURCES],
  },
  {
    row: 'Minted secrets',
    holds: 'a key set of another session of AWS is discarded',
    file: 'worker/services/sources/aws_sts.ts',
    text: "if (textOf(xml, 'Arn') !== sessionArn(source))",
    replacement: "if (textOf(xml, 'Arn') === '')",
    tests: [AWS],
  },
  {
    row: 'Minted secrets',
    holds: 'a key set of AWS without its session policy is discarded',
    file: 'worker/services/sources/aws_sts.ts',
    text: "if (isNarrowed(source) && textOf(xml, 'PackedPolicySize') === null)",
    replacement: 'if (isNarrowed(source) && xml === "")',
    tests: [AWS],
  },
  {
    row: 'Minted secrets',
    holds: 'a key set of AWS is not one text for a connector, an MCP server or a program',
    file: MINTED,
    text: 'if (!current.ok || current.value.signedAs === undefined) return current;',
    replacement: 'return current;',
    tests: [AWS],
  },
  {
    row: 'Minted secrets',
    holds: 'a binding that does not say so cannot name a key set of AWS',
    file: 'worker/services/bindings/host_bindings.ts',
    text: 'if (isKeySet && !wantsKeySet) {',
    replacement: 'if (isKeySet && !wantsKeySet && path === "") {',
    tests: [AWS],
  },
  {
    row: 'Minted secrets',
    holds: 'a sidecar gives a key set of AWS to no other binding',
    file: 'sidecar/exchange/material.ts',
    text: 'if (hasKeySet !== wantsKeySet) {',
    replacement: 'if (!hasKeySet && wantsKeySet) {',
    tests: ['sidecar/exchange/material.test.ts'],
  },
  {
    row: 'Minted secrets',
    holds: 'a token of another type than was asked for is discarded',
    file: 'worker/services/sources/kinds/token_exchange.ts',
    text: 'if (wanted !== undefined && issued !== undefined && issued !== wanted) {',
    replacement: "if (wanted !== undefined && issued === '') {",
    tests: [SOURCES],
  },
  {
    row: 'Minted secrets',
    holds: 'the key of a source is sealed',
    file: STORED,
    text: 'sealedMaterial: await context.vault.seal(keyPlace(secret), key),',
    replacement: 'sealedMaterial: key.reveal(),',
    tests: [SOURCES],
  },
  {
    row: 'Minted secrets',
    holds: 'a sidecar’s copy ends by each of two clocks',
    file: 'sidecar/control/credentials.ts',
    text: 'return now < goodUntil && this.#monotonicNow() < goodUntilMonotonic;',
    replacement: 'return now < goodUntil;',
    tests: ['sidecar/control/credentials.test.ts'],
  },
  {
    row: 'Minted secrets',
    holds: 'a dry run checks the key that it is given',
    file: STORED,
    text: 'const problem = await findSourceProblem(context, planned);',
    replacement: 'const problem = await findSourceProblem(context, { ...planned, key: null });',
    tests: [SOURCES],
  },
];
