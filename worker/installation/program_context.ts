import type { MarketplaceContext } from '../marketplace/marketplace_context.ts';
import type { SignInContext } from '../sign_in/sign_in_context.ts';
import type { TokenContext } from '../tokens/token_context.ts';

/** The context of every service, made once per program. */
export interface ProgramContext extends MarketplaceContext, SignInContext, TokenContext {}
