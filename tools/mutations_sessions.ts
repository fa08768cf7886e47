import type { Mutation } from './mutation.ts';

const KEEPER = 'sidecar/session/session_keeper.ts';
const SAVED = 'sidecar/session/saved_session.ts';
const SEAL = 'sidecar/control/session_seal.ts';
const SESSIONS = 'sidecar/session/sessions.ts';
const KEEPER_TEST = 'sidecar/session/session_keeper.test.ts';
const PANIC = 'cli/up/panic_command.ts';
const LAUNCHERS = 'cli/up/launcher_processes.ts';
const FOLDERS = 'cli/up/session_folders.ts';
const PANIC_TEST = 'cli/up/panic_command.test.ts';
const LAUNCHERS_TEST = 'cli/up/launcher_processes.test.ts';
const PANIC_ROW = 'svc panic';
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
    text: 'Promise.allSettled([this.#options.keeper?.forget(session)])',
    replacement: 'Promise.allSettled([Promise.resolve()])',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'a session ends although its file cannot be removed',
    file: SESSIONS,
    text: 'await Promise.allSettled([this.#options.keeper?.forget(session)]);',
    replacement: "[{ status: String(await this.#options.keeper?.forget(session)), reason: '' }];",
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'a container at a bridge’s gateway is not saved: nobody holds its port during a restart',
    file: SAVED,
    text: "listener?.listener !== 'namespace'",
    replacement: 'listener === null',
    tests: [KEEPER_TEST],
  },
  {
    row: ROW,
    holds: 'a container at a bridge’s gateway is not restored either',
    file: KEEPER,
    text: "    if (container !== null && container.listener.listener !== 'namespace') return 'proxy_moved';\n",
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
    text: 'await this.#remove(session).catch(',
    replacement: 'await Promise.resolve().catch(',
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
  {
    row: PANIC_ROW,
    holds: 'a step that fails does not stop the others',
    file: PANIC,
    text: 'notDone.push(`${what}: ${error instanceof Error ? error.message : String(error)}`);',
    replacement: 'throw error;',
    tests: [PANIC_TEST],
  },
  {
    row: PANIC_ROW,
    holds: 'a link in the folder of a session is not followed',
    file: FOLDERS,
    text: ' | constants.O_NOFOLLOW',
    replacement: '',
    tests: [LAUNCHERS_TEST],
  },
  {
    row: PANIC_ROW,
    holds: 'a launcher that only the sidecar names is ended',
    file: PANIC,
    text: '(owner && isSurelyRunning(owner) ? [owner] : [])',
    replacement: '(owner && isSurelyRunning(owner) ? [] : [])',
    tests: [PANIC_TEST],
  },
  {
    row: PANIC_ROW,
    holds: 'a live session without a known launcher is reported',
    file: PANIC,
    text: '(sandbox ?? null) === null && !(owner && isSurelyRunning(owner))',
    replacement: 'sandbox !== sandbox && owner !== owner',
    tests: [PANIC_TEST],
  },
  {
    row: PANIC_ROW,
    holds: 'processes are stopped before they are killed',
    file: LAUNCHERS,
    text: "signal(each, 'SIGSTOP');",
    replacement: "process.kill(each.pid, 'SIGTERM');",
    tests: [LAUNCHERS_TEST],
  },
  {
    row: PANIC_ROW,
    holds: 'a process that left its parent is found by its session',
    file: LAUNCHERS,
    text: 'const rootPids = new Set([...known.map(({ pid }) => pid), ...findMarked(parents, sessionIds)]);',
    replacement: 'const rootPids = new Set(known.map(({ pid }) => pid));',
    tests: [LAUNCHERS_TEST],
  },
];
