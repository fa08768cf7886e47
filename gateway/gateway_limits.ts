/** Limits of the gateway. Times in milliseconds. */
export interface GatewayLimits {
  /** How long a list waits for servers that are starting. */
  readonly listWaitMs: number;
  /** How long a server has to start and to shake hands; a package that is fetched first counts too. */
  readonly startMs: number;
  /** How long a local server has to answer which revision it speaks, before it is taken for one of the earlier ones. */
  readonly probeMs: number;
  /** How long a server has for a list, a prompt, a resource or a completion. */
  readonly requestMs: number;
  /** How long a tool call may be silent; progress begins it anew. */
  readonly callMs: number;
  /** How long a tool call may take in all. */
  readonly maxCallMs: number;
  /** How long a call waits for what it asked its client for. */
  readonly inputMs: number;
  /** Servers that are starting at one time. */
  readonly maxStarting: number;
  readonly maxCalls: number;
  readonly maxCallsOfServer: number;
  readonly maxArgumentBytes: number;
  readonly maxReplyBytes: number;
  /** One message of a server. */
  readonly maxMessageBytes: number;
  /** Of a server's output that is no message, before the server is ended for it. */
  readonly maxGarbageBytes: number;
  readonly maxGarbageLines: number;
  /** What is read of a server's output in a second; the rest waits. */
  readonly maxBytesPerSecond: number;
  readonly maxMessagesPerSecond: number;
  readonly maxListItems: number;
  readonly maxListPages: number;
  /** Items in one page of a list of ours. */
  readonly pageItems: number;
  readonly maxSessions: number;
  readonly maxSessionsOfCaller: number;
  readonly sessionIdleMs: number;
  /** Failed starts in a row before a server is given up until it is asked for again. */
  readonly maxFailures: number;
  /** A server that ran this long before it ended is not one that cannot run. */
  readonly steadyMs: number;
  /** How long a server that was given up is left alone, whoever asks for it. */
  readonly giveUpMs: number;
  /** Between asking a server to end and making it. */
  readonly stopMs: number;
}

const MIB = 1024 * 1024;

export const DEFAULT_GATEWAY_LIMITS: GatewayLimits = {
  listWaitMs: 30_000,
  startMs: 90_000,
  probeMs: 15_000,
  requestMs: 60_000,
  callMs: 300_000,
  maxCallMs: 3_600_000,
  inputMs: 600_000,
  maxStarting: 8,
  maxCalls: 128,
  maxCallsOfServer: 32,
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
