import type { Context } from 'hono';
import type { BindingTemplate } from '../../../shared/wire/binding_template.ts';
import type { ReadyService } from '../../../shared/wire/ready_services.ts';
import type { Assets } from '../../pages/frame/assets.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ProgramContext } from '../../installation/program_context.ts';
import type { SidecarCaller } from '../../services/sidecars/sidecar_calls.ts';

/** The variables that the middleware sets for each request. */
export interface AppEnv {
  Bindings: Record<string, unknown>;
  Variables: {
    requestId: string;
    context: ProgramContext;
    /** Static files of the pages. */
    assets: Assets;
    /** The page that the form at an address is on (form_pages.ts). */
    pageOfForm: (path: string) => string;
    /** The ready bindings of the catalog. */
    templates: () => readonly BindingTemplate[];
    /** The well-known services of the catalog. */
    services: () => readonly ReadyService[];
    /** The user that a call is made for; set when a user's operation is authenticated. */
    caller: Caller;
    /** The same for a public operation; null without a sign-in. */
    visitor: Caller | null;
    /** The calling sidecar; set when a sidecar's operation is authenticated. */
    sidecar: SidecarCaller;
    /** The caller's address; null if the runtime does not provide it. */
    clientAddress: string | null;
    /**
     * Whether the call came from another user of this machine; false if the runtime cannot tell. Looked up on demand.
     */
    isOtherUser: () => Promise<boolean>;
  };
}
export type AppContext = Context<AppEnv>;

/** One line of the log. It must contain no secret: no path, query, header or body of a request. */
export type LogEntry = Readonly<Record<string, string | number | boolean | null>>;
export type Log = (entry: LogEntry) => void;
