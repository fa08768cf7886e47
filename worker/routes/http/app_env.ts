import type { Context } from 'hono';
import type { BindingTemplate } from '../../../shared/wire/binding_template.ts';
import type { Assets } from '../../pages/frame/assets.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ProgramContext } from '../../installation/program_context.ts';
import type { SidecarCaller } from '../../services/sidecars/sidecar_calls.ts';

/** What the middleware puts beside each request. */
export interface AppEnv {
  Bindings: Record<string, unknown>;
  Variables: {
    requestId: string;
    context: ProgramContext;
    /** The files that pages load. */
    assets: Assets;
    /** The ready bindings of the catalog. */
    templates: () => readonly BindingTemplate[];
    /** The user a call is made for; set by the authentication of a user's operation. */
    caller: Caller;
    /** The same for an operation that needs no sign-in; null without one. */
    visitor: Caller | null;
    /** The sidecar a call came from; set by the authentication of a sidecar's operation. */
    sidecar: SidecarCaller;
    /** The address that the call came from; null where the runtime does not say. */
    clientAddress: string | null;
    /** Whether the call came from another user of this machine; false where the runtime does not say. It is looked up when asked. */
    isOtherUser: () => Promise<boolean>;
  };
}
export type AppContext = Context<AppEnv>;

/** One line of the log. Nothing in it may be a secret: no path, query, header or body of a request. */
export type LogEntry = Readonly<Record<string, string | number | boolean | null>>;
export type Log = (entry: LogEntry) => void;
