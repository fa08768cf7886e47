import type { Mutation } from './mutation.ts';

const KEEPER = 'sidecar/session/session_keeper.ts';
const SAVED = 'sidecar/session/saved_session.ts';
const SEAL = 'sidecar/control/session_seal.ts';
const SESSIONS = 'sidecar/session/sessions.ts';
const KEEPER_TEST = 'sidecar/session/session_keeper.test.ts';
const ROW = 'Restored sessions';

/** What keeps a session dead that must not come back after a restart of the sidecar. */
export const SESSION_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'the file and its folder belong to this user',
    file: SAVED,
    text: ' && (uid === null || found.uid === uid)',
    replacement: '',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'nobody else may read or write the file and its folder',
    file: SAVED,
    text: '(found.mode & 0o077) === 0 && ',
    replacement: '',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'a link is not followed',
    file: SAVED,
    text: 'constants.O_RDONLY | constants.O_NOFOLLOW',
    replacement: 'constants.O_RDONLY',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'exactly this sidecar has signed the file, so nothing comes back after a new enrolment or a change',
    file: SEAL,
    text: "const { payload, protectedHeader } = await compactVerify(text.trim(), verifyingKey, { algorithms: ['EdDSA'] });",
    replacement:
      "const [head = '', body = ''] = text.trim().split('.'); const payload = Buffer.from(body, 'base64url'); const protectedHeader = JSON.parse(Buffer.from(head, 'base64url').toString());",
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'what this sidecar signs for other purposes is no session',
    file: SEAL,
    text: 'if (protectedHeader.typ !== TYP) return null;',
    replacement: '',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'the file is in the folder of its own session',
    file: KEEPER,
    text: ' || saved.sessionId !== sessionId',
    replacement: '',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'the CA and its key are the ones of the session',
    file: 'sidecar/tls/session_ca.ts',
    text: 'if (digestOf(files) !== digest) return null;',
    replacement: '',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'its launcher runs',
    file: KEEPER,
    text: "if (owner !== null && !runs(owner)) return 'launcher_ended';",
    replacement: '',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'its container runs',
    file: KEEPER,
    text: "return runs(container.process) ? null : 'container_ended';",
    replacement: 'return null;',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'a process id that was reused is another process',
    file: 'machine/process_identity.ts',
    text: 'return known.started !== null && identify(known.pid)?.started === known.started;',
    replacement: 'return known.started !== null && identify(known.pid) !== null;',
    tests: [KEEPER_TEST, 'machine/process_identity.test.ts'],
  },
  {
    row: ROW,
    holds: 'start times of an earlier run of the system do not count',
    file: KEEPER,
    text: "if (bootId !== this.#options.bootId) return 'launcher_ended';",
    replacement: '',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'its time is not over',
    file: KEEPER,
    text: "if (!renews && clock.now() >= expiresAt) return 'session_expired';",
    replacement: '',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'a plan and the scopes of its steps are not saved',
    file: SAVED,
    text: 'if (tokenHash === null || lock !== null) return null;',
    replacement: 'if (tokenHash === null && lock === null) return null;',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'a session that ends cannot come back after a crash',
    file: SESSIONS,
    text: '    // First, so that a crash from here on cannot bring the session back.\n    await this.#options.keeper?.forget(session);\n',
    replacement: '',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'a session that has ended or whose sidecar was revoked is not saved again',
    file: KEEPER,
    text: 'if (this.#forgotten.has(session) || session.ended) return;',
    replacement: '',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'no older state of a session comes back if it could not be saved',
    file: KEEPER,
    text: '      await this.#remove(session);\n    }\n  }\n\n  async #remove',
    replacement: '    }\n  }\n\n  async #remove',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'what was paused stays paused',
    file: KEEPER,
    text: '    session.paused = saved.paused;\n',
    replacement: '',
    tests: [KEEPER_TEST],
  },
];
