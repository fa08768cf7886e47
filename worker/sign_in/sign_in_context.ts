import type { ServiceContext } from '../kernel/service_context.ts';
import type { SignInMethods } from './configure.ts';

/** What the sign-in services need. */
export interface SignInContext extends ServiceContext {
  /** The configured ways to sign in. */
  readonly signIn: SignInMethods;
}
