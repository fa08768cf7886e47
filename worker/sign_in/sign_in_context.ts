import type { ServiceContext } from '../kernel/service_context.ts';
import type { SignInMethods } from './configure.ts';

/** What sign-in works with. */
export interface SignInContext extends ServiceContext {
  /** How people sign in. */
  readonly signIn: SignInMethods;
}
