import type { SupervisedServer } from './supervised_server.ts';

/** The server of a request does not run. The message, for a person or a model, has the problem and the fix. */
export class ServerUnavailable extends Error {
  constructor(name: string, why: string) {
    super(`the MCP server ${name} is not available: ${why}`);
  }
}

/** Why a request that waited for a server's start has no connection. */
export function unavailableError(name: string, { facts }: Pick<SupervisedServer, 'facts'>): ServerUnavailable {
  return new ServerUnavailable(name, facts.problem?.message ?? 'it is still starting; try again later');
}

/** A failure between gateway and server, with secrets masked. */
export class DownstreamError extends Error {
  constructor(why: string) {
    super(`the MCP server did not answer: ${why.slice(0, 1_000)}`);
  }
}
