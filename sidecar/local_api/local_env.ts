import type { HttpBindings } from '@hono/node-server';
import type { Caller } from './callers.ts';

/** What a handler of the local API gets besides the request. */
export interface LocalEnv {
  Bindings: HttpBindings;
  Variables: { caller: Caller };
}
