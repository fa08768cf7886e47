/** The server of a request does not run. The message, for a person or a model, has the problem and the fix. */
export class ServerUnavailable extends Error {
  constructor(name: string, why: string) {
    super(`the MCP server ${name} is not available: ${why}`);
  }
}

/** A failure between gateway and server, with secrets masked. */
export class DownstreamError extends Error {
  constructor(why: string) {
    super(`the MCP server did not answer: ${why.slice(0, 1_000)}`);
  }
}
