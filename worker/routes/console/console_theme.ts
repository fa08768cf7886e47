import { isTheme, THEMES } from '../../pages/frame/theme.ts';
import { apiError } from '../../../shared/wire/errors.ts';
import { localPath } from '../auth/local_path.ts';
import { setThemeCookie } from '../http/theme_cookie.ts';
import { forChange, problem } from './console.ts';

/** `POST /theme`: keeps the look in this browser, and shows the page again. */
export const submitTheme = forChange(async (c, caller, { theme, return_to: returnTo }) => {
  if (!isTheme(theme)) {
    return problem(c, caller, apiError('invalid_input', `theme: must be one of ${THEMES.join(', ')}`));
  }
  setThemeCookie(c, theme);
  return c.redirect(localPath(returnTo), 303);
});
