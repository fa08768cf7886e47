/** An image with Node 20 or newer, by a name that the engine's configured registry resolves. */
export const NODE_IMAGE = 'node:24-slim';
