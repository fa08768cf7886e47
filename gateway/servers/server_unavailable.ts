/** A server that a request is for does not run. The message is for a person and for a model: the problem and the fix. */
export class ServerUnavailable extends Error {
  constructor(name: string, why: string) {
    super(`the MCP server ${name} is not available: ${why}`);
  }
}

/** What went wrong between the gateway and a server, with its secrets masked. */
export class DownstreamFailure extends Error {
  constructor(why: string) {
    super(`the MCP server did not answer: ${why.slice(0, 500)}`);
  }
}
