/** Limits of the gateway. Times in milliseconds. */
export interface GatewayLimits {
  /** How long a list of all servers waits for those that start. Some clients wait 5 s for a list in all. */
  readonly listMs: number;
  /** How much longer it waits until new tools are reported. */
  readonly reportMs: number;
  /** How long a request waits for the list of one server, which it needs. */
  readonly listWaitMs: number;
  /** How long a list waits for a starting server whose list of the last run is kept. */
  readonly keptListMs: number;
  /** How much longer it waits if the server runs by then. */
  readonly freshListMs: number;
  /** How long a server may take to start and complete the handshake, including fetching its package. */
  readonly startMs: number;
  /** How long a local server may take to answer which revision it speaks; after that, an earlier one is assumed. */
  readonly probeMs: number;
  /** The same of a remote server, whose network or machine may be busy: an earlier revision would be used for an hour. */
  readonly remoteProbeMs: number;
  /** How long a server may take for a list, a prompt, a resource or a completion. */
  readonly requestMs: number;
  /** How long a tool call may be silent; progress restarts the time. */
  readonly callMs: number;
  /** How long a tool call may take in all. */
  readonly maxCallMs: number;
  /** How long a call waits for input from its client. */
  readonly inputMs: number;
  /** How many local servers may start at the same time. */
  readonly maxStarting: number;
  /** How many remote servers may be connected to at the same time. */
  readonly maxConnecting: number;
  /** Running calls in all, and to one server. The last quarter is for callers that have only a few (`call_slots.ts`). */
  readonly maxCalls: number;
  readonly maxCallsOfServer: number;
  /** Tasks that run, in all and of one server. The last quarter is for callers that have only a few. */
  readonly maxTasks: number;
  readonly maxTasksOfServer: number;
  /** Tasks that are known, and how many of one caller's have ended. */
  readonly maxKeptTasks: number;
  readonly maxKeptTasksOfCaller: number;
  /** How long a task may take in all, and is kept. */
  readonly taskMs: number;
  /** After this time without a question of its client, the gateway itself asks for the state of a task that runs. */
  readonly followTaskMs: number;
  /** How often clients are told to ask for the state of a task at most. */
  readonly minPollMs: number;
  readonly maxArgumentBytes: number;
  readonly maxReplyBytes: number;
  /** Maximum size of one message from a server. */
  readonly maxMessageBytes: number;
  /** How much output that is not a message a server may write before it is ended. */
  readonly maxGarbageBytes: number;
  readonly maxGarbageLines: number;
  /** How much of a server's output is read per second; the rest waits. */
  readonly maxBytesPerSecond: number;
  readonly maxMessagesPerSecond: number;
  readonly maxListItems: number;
  readonly maxListPages: number;
  /** Items in one page of our lists. */
  readonly pageItems: number;
  readonly maxSessions: number;
  readonly maxSessionsOfCaller: number;
  readonly sessionIdleMs: number;
  /** Failed starts in a row before a server is left stopped until the next request. */
  readonly maxFailures: number;
  /** If a server ran this long before it ended, its failures are reset. */
  readonly steadyMs: number;
  /** After giving up, how long requests do not start the server. */
  readonly giveUpMs: number;
  /** Time between asking a server to end and killing it. */
  readonly stopMs: number;
}

const MIB = 1024 * 1024;

export const DEFAULT_GATEWAY_LIMITS: GatewayLimits = {
  listMs: 4_000,
  reportMs: 700,
  listWaitMs: 30_000,
  keptListMs: 1_000,
  freshListMs: 3_000,
  startMs: 90_000,
  probeMs: 15_000,
  remoteProbeMs: 20_000,
  requestMs: 60_000,
  callMs: 300_000,
  maxCallMs: 3_600_000,
  inputMs: 600_000,
  maxStarting: 8,
  maxConnecting: 64,
  maxCalls: 128,
  maxCallsOfServer: 32,
  maxTasks: 64,
  maxTasksOfServer: 32,
  maxKeptTasks: 4_096,
  maxKeptTasksOfCaller: 512,
  taskMs: 24 * 3_600_000,
  followTaskMs: 30_000,
  minPollMs: 500,
  maxArgumentBytes: 4 * MIB,
  maxReplyBytes: 16 * MIB,
  maxMessageBytes: 24 * MIB,
  maxGarbageBytes: 4 * MIB,
  maxGarbageLines: 2_000,
  maxBytesPerSecond: 96 * MIB,
  maxMessagesPerSecond: 5_000,
  maxListItems: 5_000,
  maxListPages: 200,
  pageItems: 1_000,
  maxSessions: 128,
  maxSessionsOfCaller: 32,
  sessionIdleMs: 3_600_000,
  maxFailures: 5,
  steadyMs: 60_000,
  giveUpMs: 60_000,
  stopMs: 2_000,
};
