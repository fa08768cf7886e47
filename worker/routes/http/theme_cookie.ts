import { getCookie, setCookie } from 'hono/cookie';
import { isTheme, type Theme } from '../../pages/frame/theme.ts';
import { isAtConsole } from '../console/console_host.ts';
import type { AppContext } from './app_env.ts';

const YEAR_SECONDS = 365 * 86_400;

const cookieName = (c: AppContext): string => (c.get('context').local === null ? '__Host-theme' : 'svc_theme');

/** The look that this browser has chosen; that of the system if it has not. */
export function themeOf(c: AppContext): Theme {
  const chosen = isAtConsole(c) ? getCookie(c, cookieName(c)) : undefined;
  return isTheme(chosen) ? chosen : 'auto';
}

export function setThemeCookie(c: AppContext, theme: Theme): void {
  const secure = c.get('context').local === null;
  setCookie(c, cookieName(c), theme, { httpOnly: true, secure, sameSite: 'Lax', path: '/', maxAge: YEAR_SECONDS });
}
