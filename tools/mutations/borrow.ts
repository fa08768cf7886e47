import type { Mutation } from '../mutation.ts';

const CREDENTIALS = 'sidecar/borrow/borrowed_credentials.ts';
const CREDENTIALS_TEST = 'sidecar/borrow/borrowed_credentials.test.ts';
const FILES = 'machine/borrow/check_files.ts';
const FILES_TEST = 'machine/borrow/check_files.test.ts';
const GRANT = 'shared/borrow/borrow_grant.ts';
const GRANT_TEST = 'shared/borrow/borrow_grant.test.ts';
const row = 'Borrowed secrets';

/** Checks of secrets that a program on the machine gives. */
export const BORROW_MUTATIONS: readonly Mutation[] = [
  {
    row,
    holds: 'a request to a host that no consent names is refused with `borrow_not_consented`',
    file: GRANT,
    text: 'if (!grant.hosts.some((pattern) => covers(pattern, use.host))) {',
    replacement: 'if (grant.hosts.length === 0) {',
    tests: [GRANT_TEST],
  },
  {
    row,
    holds: 'a value goes into no other header or query parameter than its consent names',
    file: GRANT,
    text: 'if (use.place !== (grant.place ?? null)) {',
    replacement: 'if (use.place === null && grant.place !== undefined) {',
    tests: [GRANT_TEST],
  },
  {
    row,
    holds: 'a consent to sign with a borrowed key is none to send it as a session token',
    file: 'sidecar/exchange/material.ts',
    text: 'source.resolve(ref, useOfSessionToken(binding, host))',
    replacement: 'source.resolve(ref, useOf(binding, host))',
    tests: ['sidecar/exchange/material.test.ts'],
  },
  {
    row,
    holds: 'a consent to reading covers no binding that may write',
    file: GRANT,
    text: "if (grant.effect === 'read' && use.effect !== 'read') {",
    replacement: "if (grant.effect === 'read' && use.effect === 'write') {",
    tests: [GRANT_TEST],
  },
  {
    row,
    holds: 'a program that was replaced since the consent is not started',
    file: CREDENTIALS,
    text: 'if (JSON.stringify(files.value) !== JSON.stringify(grant.files)) {',
    replacement: 'if (files.value.length !== grant.files.length) {',
    tests: [CREDENTIALS_TEST],
  },
  {
    row,
    holds: 'a value ends by each of two clocks',
    file: CREDENTIALS,
    text: 'return isSame && leftUntil(held.goodUntil, this.#options) > 0;',
    replacement: 'return isSame && this.#options.clock.now() < held.goodUntil.wall;',
    tests: [CREDENTIALS_TEST],
  },
  {
    row,
    holds: 'a value that was on its way when its record or consent changed is dropped',
    file: CREDENTIALS,
    text: ' || this.#versions.get(keyOf(ref)) !== version)',
    replacement: ')',
    tests: [CREDENTIALS_TEST],
  },
  {
    row,
    holds: 'a consent of another enrolment, or one whose text was edited, does not count',
    file: 'sidecar/borrow/borrow_consents.ts',
    text: 'return sidecarId === this.#options.sidecarId && hash === sha256Hex(grantText(grant));',
    replacement: 'return sidecarId === this.#options.sidecarId && hash.length > 0;',
    tests: [CREDENTIALS_TEST],
  },
  {
    row,
    holds: 'a program is refused if every user could put another one there',
    file: FILES,
    text: 'if (isLink || isSticky || (mode & OTHERS_WRITE) === 0) return null;',
    replacement: 'if (isLink || isSticky || mode > 0) return null;',
    tests: [FILES_TEST],
  },
];
